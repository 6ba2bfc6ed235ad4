"""How well codes control what is decoded: does a swapped code change what it should, and nothing else?"""

from typing import NamedTuple

import torch
from torch import Tensor

from offmap.dependence.disentangle.swaps import Coder
from offmap_bench.colour_digits import ColourDigits, to_images
from offmap_bench.digit_classifier import DigitClassifier


class Partners(NamedTuple):
    """For each image, the image that lends its digit code and the one that lends its colour code."""

    digit: Tensor
    colour: Tensor


class SwapScores(NamedTuple):
    """How well codes control what is decoded from them.

    Args:
        acc_d: Share of the images with the digit code of another that show the other's digit.
        acc_c: Share of the images with the colour code of another that still show their own digit.
        res_l2: Squared distance, summed over pixels and channels, between an image with the colour code of another and
            its handwriting painted in that colour; the mean over images.
    """

    acc_d: float
    acc_c: float
    res_l2: float


def draw_partners(digits: Tensor, seed: int = 0) -> Partners:
    """Draws for each image a partner with another digit, and one with any digit that lends its colour.

    Between images of the same digit, a swap of digit codes could not be told from no swap.
    """
    counts = digits.bincount()
    if counts.max() == len(digits):
        raise ValueError("digits must have at least two values: each image needs a partner with another digit")
    random = torch.Generator().manual_seed(seed)
    # Sorted by digit, the images of other digits start where those of one's own end, and wrap around.
    order, ends = digits.argsort(stable=True), counts.cumsum(0)
    others = len(digits) - counts[digits]
    steps = (torch.rand(len(digits), generator=random, dtype=torch.float64) * others).long()
    lent = order[(ends[digits] + steps) % len(digits)]
    return Partners(lent, torch.randperm(len(digits), generator=random))


def score_swaps(model: Coder, data: ColourDigits, classifier: DigitClassifier, *, seed: int = 0) -> SwapScores:
    """Swaps the codes of test images and scores what is decoded.

    Args:
        model: A fitted model with the groups "digit" and "colour".
        data: Images it has not seen.
        classifier: Reads the digits of decoded images.
        seed: Seed of the partners.
    """
    codes, partners = model.encode(data.pixels), draw_partners(data.digits, seed)
    digit_swapped, colour_swapped = (
        to_images(model.decode(codes | {group: codes[group][rows.numpy()]}))
        for group, rows in partners._asdict().items()
    )
    wanted = data.repainted(data.colours[partners.colour])
    return SwapScores(
        acc_d=_share(classifier.predict(digit_swapped) == data.digits[partners.digit]),
        acc_c=_share(classifier.predict(colour_swapped) == data.digits),
        res_l2=float((colour_swapped - wanted).square().sum((1, 2, 3)).mean()),
    )


class PlainScores(NamedTuple):
    """How well codes that were not swapped are decoded.

    Args:
        acc_plain: Share of the images whose digit can be read from what is decoded.
        l2_plain: Squared distance, summed over pixels and channels, between image and what is decoded; the mean over
            images.
    """

    acc_plain: float
    l2_plain: float


def score_plain(model: Coder, data: ColourDigits, classifier: DigitClassifier) -> PlainScores:
    """Decodes the codes of images as they are: what is lost here is not lost by a swap."""
    decoded = to_images(model.decode(model.encode(data.pixels)))
    return PlainScores(
        acc_plain=_share(classifier.predict(decoded) == data.digits),
        l2_plain=float((decoded - data.images).square().sum((1, 2, 3)).mean()),
    )


def _share(right: Tensor) -> float:
    return float(right.float().mean())
