"""Controllable generation: does a swapped code change what it should, and nothing else?"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from offmap.dependence.disentangle.codes import Codes
from offmap.dependence.disentangle.colour import ColourDigits
from offmap.dependence.disentangle.judge import DigitJudge


class Coder(Protocol):
    """What turns images into codes and back."""

    def encode(self, images: Tensor) -> Codes:
        """The codes of images."""
        ...

    def decode(self, codes: Codes) -> Tensor:
        """The images that codes stand for."""
        ...


class Partners(NamedTuple):
    """Which image lends its digit to each, and which its colour."""

    digit: Tensor
    colour: Tensor


class Control(NamedTuple):
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


def partners(digits: Tensor, seed: int = 0) -> Partners:
    """Draws a partner of another digit for each image, and one of any digit that lends its colour.

    Between images of one digit a transfer could not be told from none at all.
    """
    counts = digits.bincount()
    if counts.max() == len(digits):
        raise ValueError("digits must be of two kinds at least: each image needs a partner of another digit")
    random = torch.Generator().manual_seed(seed)
    # Sorted by digit, the images of the others begin where one's own end, and go round.
    order, ends = digits.argsort(stable=True), counts.cumsum(0)
    others = len(digits) - counts[digits]
    steps = (torch.rand(len(digits), generator=random, dtype=torch.float64) * others).long()
    lent = order[(ends[digits] + steps) % len(digits)]
    return Partners(lent, torch.randperm(len(digits), generator=random))


def control(model: Coder, data: ColourDigits, judge: DigitJudge, *, seed: int = 0) -> Control:
    """Swaps the codes of test images and judges what comes out.

    Args:
        model: A fitted model.
        data: Images it has not seen.
        judge: Reads the digits of what is decoded.
        seed: Of the partners.
    """
    codes, lenders = model.encode(data.images), partners(data.digits, seed)
    digit_moved = model.decode(codes.with_digit_of(lenders.digit))
    colour_moved = model.decode(codes.with_colour_of(lenders.colour))
    wanted = data.repainted(data.colours[lenders.colour])
    return Control(
        acc_d=_share(judge.read(digit_moved) == data.digits[lenders.digit]),
        acc_c=_share(judge.read(colour_moved) == data.digits),
        res_l2=float((colour_moved - wanted).square().sum((1, 2, 3)).mean()),
    )


def grid(model: Coder, sources: Tensor, targets: Tensor, code: str) -> Tensor:
    """Decodes each source with the ``code`` of each target: ``(targets, sources, 3, 32, 32)``.

    Args:
        model: A fitted model.
        sources: Images that keep their other codes.
        targets: Images whose code is lent.
        code: "digit" or "colour".
    """
    if code not in ("digit", "colour"):
        raise ValueError(f"code must be 'digit' or 'colour'; got {code!r}")
    kept, lent = model.encode(sources), model.encode(targets)
    rows = [getattr(lent, code)[[place]].expand(len(sources), -1) for place in range(len(targets))]
    return torch.stack([model.decode(kept._replace(**{code: row})) for row in rows])


def _share(right: Tensor) -> float:
    return float(right.float().mean())
