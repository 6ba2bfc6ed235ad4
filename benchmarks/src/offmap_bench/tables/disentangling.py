"""Digit, colour and style codes of coloured digits: the thesis's table 2.1 and its figures of swapped codes."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray
from torch import Tensor

from offmap.dependence.disentangle import CodeGroup, GroupedAutoencoder, swap_grid
from offmap.dependence.disentangle.swaps import Coder
from offmap.files import replacing
from offmap_bench.code_swaps import score_swaps
from offmap_bench.colour_digits import GROUPS, ColourDigits, colour_digits, to_images, to_pixels
from offmap_bench.digit_classifier import DigitClassifier, train_classifier
from offmap_bench.disentangling_rivals import DIINRival, VAERival
from offmap_bench.figure import Figure
from offmap_bench.table import Table

SOURCE = "Open-World Learning (thesis), chapter 2"
ALONE, WATCHED = COLUMNS = ("no adversary", "adversary")
METRICS = ("acc_d", "acc_c", "res_l2")
# The colours of the training images, of the test images and of the classifier's images have seeds of their own.
TRAINING_SEED, TEST_SEED, CLASSIFIER_SEED = 100, 1000, 1001
NOTES = (
    "Acc_d: the digit code of a test image is replaced by that of an image with another digit; the decoded image "
    "should show the other digit. Acc_c: the colour code is replaced; the image should keep its digit. Res. l2: "
    "squared distance, summed over pixels and channels, to the same handwriting painted in the other colour. The "
    "digits are read by one classifier for all methods, trained on real images of the training split and blind to "
    "colour. The thesis does not say how partners are drawn; its 0.14 % for AE rules out partners with the same digit."
    " Departures: batch instead of instance normalisation, which could not encode brightness; critics without the "
    "softplus; one learning rate for all but critics and adversary; codes are standardised, noise of 0.7 standard "
    "deviations is added to them in training (VAE: its own noise), and the reconstruction trains the style code alone,"
    " since digit and colour codes are trained by their labels; the penalty moves the style code alone. Without noise "
    "the style kept 4 nats of the other codes in a trial, with it 0.3. The noise, and what trains which code, are the "
    "same for AE and TC and were chosen in some fifteen trials of both on 5,000 training images of MNIST, swapping "
    "codes of 2,000 other training images: by TC's Acc_d and Res. l2 and their distance from AE's, so the comparison "
    "favours TC. The width of the style code, the critics' steps, and the thesis's objective, in which reconstruction "
    "and penalty move all codes, were tried on validation images in `disentangling-width`; the rows of 16 style codes,"
    " where the thesis has 64, are better by Acc_d there than 64; an earlier trial of 8 had 84.8 against 82.8, at a "
    "larger error (129). The profile cpu trains a quarter of the channels on 10,000 of the 60,000 images for 10 epochs"
    " instead of 300, and swaps codes of 2,000 of the 10,000 test images."
)


def fit_autoencoder(data: ColourDigits, *, style: int = GROUPS["style"].width, **settings: Any) -> GroupedAutoencoder:
    """Trains the autoencoder, with a total-correlation penalty if ``tc_weight`` is above 0.

    Args:
        data: The training images.
        style: Width of the style code.
        settings: Parameters of the autoencoder.
    """
    groups = GROUPS | {"style": CodeGroup(style)}
    return GroupedAutoencoder(groups=groups, **settings).fit(data.pixels, data.targets)


def fit_vae(data: ColourDigits, **settings: Any) -> VAERival:
    """Trains the variational autoencoder."""
    return VAERival(**settings).fit(data)


def fit_diin(data: ColourDigits, **settings: Any) -> DIINRival:
    """Trains the invertible network."""
    return DIINRival(**settings).fit(data)


def trial(fit: Callable[..., Coder], **settings: Any) -> dict[str, Any]:
    """Makes a row: what trains the model, its settings, and the numbers of training and test images."""
    common = {"fit": fit, "images": 60_000, "tested": 10_000, "conv_channels": 64, "epochs": 300, "batch_size": 512}
    return common | {"lr": 5e-3} | settings


@lru_cache(maxsize=1)
def reader_of_digits() -> DigitClassifier:
    """Returns the classifier, trained on real images of the training split."""
    return train_classifier(colour_digits("train", count=20_000, seed=CLASSIFIER_SEED))


@lru_cache(maxsize=1)
def classifier_and_test(count: int) -> tuple[DigitClassifier, ColourDigits]:
    """Returns the trained classifier and the test images."""
    return reader_of_digits(), colour_digits("test", count=count, seed=TEST_SEED)


def fitted(row: Mapping[str, Any], column: str, seed: int) -> Any:
    """Trains the model of a row."""
    settings = {name: value for name, value in row.items() if name not in ("fit", "images", "tested")}
    data = colour_digits("train", count=row["images"], seed=TRAINING_SEED + seed)
    return row["fit"](data, **settings, adversary=column == WATCHED, random_state=seed)


def measure(row: Mapping[str, Any], column: str, seed: int) -> dict[str, float]:
    """Trains a model and swaps the codes of test images."""
    classifier, tested = classifier_and_test(row["tested"])
    return score_swaps(fitted(row, column, seed), tested, classifier, seed=seed)._asdict()


CPU = {"images": 10_000, "tested": 2_000, "conv_channels": 16, "epochs": 10, "batch_size": 64, "lr": 2e-3}
# The thesis's style code has 64 numbers; 16 were chosen on validation images.
NARROW_AE, NARROW_TC = "AE, 16 style codes", "TC, 16 style codes"
# Table 2.1: Acc_d, Acc_c and Res. l2.
TABLE_1 = {
    ("AE", ALONE): (2.70, 91.65, 168.95),
    ("TC", ALONE): (92.70, 97.69, 28.66),
    (NARROW_TC, ALONE): (92.70, 97.69, 28.66),
    ("AE", WATCHED): (0.14, 98.82, 389.73),
    ("VAE", WATCHED): (20.24, 92.21, 254.83),
    ("DIIN", WATCHED): (94.57, 97.45, 79.38),
    ("TC", WATCHED): (96.38, 98.23, 43.04),
}

SHARED: dict[str, Any] = {
    "source": f"{SOURCE}, table 2.1",
    "metrics": METRICS,
    "measure": measure,
    "seeds": {"cpu": range(3), "paper": range(3)},
    "profiles": {"cpu": CPU, "paper": {}},
    "needs": ("mnist",),
    "higher_is_better": {"acc_d": True, "acc_c": True, "res_l2": False},
    "formats": {"acc_d": ".2%", "acc_c": ".2%", "res_l2": ".1f"},
}


def printed(column: str) -> dict[tuple[str, str, str], float]:
    """The thesis's numbers with or without an adversary."""
    return {
        (row, column, metric): value
        for (row, where), values in TABLE_1.items()
        if where == column
        for metric, value in zip(METRICS, values, strict=True)
    }


PLAIN: dict[str, Any] = {
    "AE": trial(fit_autoencoder, tc_weight=0.0),
    "TC": trial(fit_autoencoder, tc_weight=1.0, estimator="infonce"),
}
SWAPPED = Table(
    name="disentangling",
    caption="Digit and colour codes are swapped between images of coloured MNIST, without an adversary.",
    rows={
        **PLAIN,
        NARROW_AE: trial(fit_autoencoder, tc_weight=0.0, style=16),
        NARROW_TC: trial(fit_autoencoder, tc_weight=1.0, estimator="infonce", style=16),
    },
    columns=(ALONE,),
    printed=printed(ALONE),
    notes=NOTES,
    **SHARED,
)
ADVERSARY = Table(
    name="disentangling-adversary",
    caption="The same with an adversary that watches decoded images.",
    rows={**PLAIN, "VAE": trial(fit_vae), "DIIN": trial(fit_diin)},
    columns=(WATCHED,),
    printed=printed(WATCHED),
    notes="As in `disentangling`. The adversary's gradient reaches the decoder alone. DIIN is an autoencoder with a "
    "coupling flow, trained on pairs with the same digit or colour; its adversary watches reconstructions. VAE and "
    "DIIN had no trials of their settings.",
    **SHARED,
)
NARROW_WATCHED = Table(
    name="disentangling-adversary-style",
    caption="The same with an adversary, and a style code of 16 numbers.",
    rows={NARROW_TC: SWAPPED.rows[NARROW_TC]},
    columns=(WATCHED,),
    printed={(NARROW_TC, WATCHED, metric): ADVERSARY.printed["TC", WATCHED, metric] for metric in METRICS},
    notes="As in `disentangling-adversary`, which has the row with 64 numbers, as in the thesis. The width was chosen "
    "without the adversary, on validation images.",
    **SHARED,
)

SOURCES, TARGETS = 8, 5


def shown(images: Tensor) -> NDArray[np.float32]:
    """Puts images ``(n, 3, 32, 32)`` side by side, with -1 as black and 1 as full colour."""
    rows = torch.cat(list(images), dim=2).permute(1, 2, 0)
    return ((rows + 1) / 2).clamp(0, 1).numpy()


def draw_grid(axes: Axes, model: Coder, sources: Tensor, targets: Tensor, code: str) -> None:
    """Draws one row per target, which is shown at its right; the sources whose code is replaced are at the bottom."""
    made = [to_images(row) for row in swap_grid(model, to_pixels(sources), to_pixels(targets), code)]
    blank = torch.ones_like(sources[:1])
    rows = [torch.cat([row, blank, target[None]]) for row, target in zip(made, targets, strict=True)]
    gap = np.ones((8, 32 * (len(sources) + 2), 3), dtype=np.float32)
    below = shown(torch.cat([sources, blank, blank]))
    axes.imshow(np.concatenate([*map(shown, rows), gap, below]))
    axes.set(title=f"{code} of the image at the right", xlabel="images at the bottom: sources", xticks=[], yticks=[])


def draw_swaps(path: Path, profile: str) -> None:
    """Draws codes swapped by an autoencoder and by TC, both with an adversary."""
    tested = colour_digits("test", count=200, seed=TEST_SEED).images
    sources, targets = tested[:SOURCES], tested[SOURCES : SOURCES + TARGETS]
    drawing = Drawing(figsize=(10, 7.8), layout="constrained")
    parts: Any = drawing.subfigures(2, 1)
    for part, row in zip(parts, ("TC", "AE"), strict=True):
        model = fitted(SWAPPED.method(row, profile), WATCHED, seed=0)
        part.suptitle(f"{row}, with an adversary", fontweight="bold")
        for axes, code in zip(part.subplots(1, 2), ("colour", "digit"), strict=True):
            draw_grid(axes, model, sources, targets, code)
    with replacing(path) as fresh:
        drawing.savefig(fresh, dpi=130)


TABLES = (
    SWAPPED,
    ADVERSARY,
    NARROW_WATCHED,
    Figure(
        name="disentangling-swaps",
        source=f"{SOURCE}, figures 2.4 and 2.8",
        caption="Coloured digits with the colour code, or the digit code, of another image: TC and plain autoencoder.",
        draw=draw_swaps,
        needs=("mnist",),
    ),
)
