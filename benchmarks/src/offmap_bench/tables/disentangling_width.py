"""What the width of the style code, the critics' steps, the objective, noise and passes do to swapped codes."""

from collections.abc import Mapping
from typing import Any

import torch

from offmap_bench.code_swaps import score_plain, score_swaps
from offmap_bench.colour_digits import ColourDigits, colour_digits
from offmap_bench.table import Table
from offmap_bench.tables.disentangling import METRICS, SOURCE, fit_autoencoder, reader_of_digits

# No other table draws training images with these seeds.
VALIDATION_SEED = 200
PLAIN = ("acc_plain", "l2_plain")
WIDTHS = (64, 16)
COLUMNS: dict[str, dict[str, Any]] = {
    "one critic step": {},
    "three critic steps": {"critic_steps": 3},
    "thesis's objective": {"joint": True},
    "half the noise": {"jitter": 0.35},
    "five times the passes": {"epochs": 40},
}
ROW = {"images": 5_000, "tested": 2_000, "conv_channels": 16, "epochs": 8, "batch_size": 64, "lr": 2e-3}


def training_and_validation(images: int, tested: int, seed: int) -> tuple[ColourDigits, ColourDigits]:
    """Draws training images of MNIST and divides them: the model is fitted to the first part and judged by the rest."""
    drawn = colour_digits("train", count=images + tested, seed=VALIDATION_SEED + seed)
    learnt, kept = torch.arange(images + tested).split([images, tested])
    return drawn.some(learnt), drawn.some(kept)


def measure(row: Mapping[str, Any], column: str, seed: int) -> dict[str, float]:
    """Trains TC as the column says, swaps the codes of validation images, and decodes them without a swap."""
    learnt, kept = training_and_validation(row["images"], row["tested"], seed)
    settings = {name: value for name, value in row.items() if name not in ("images", "tested")}
    model = fit_autoencoder(learnt, **settings | COLUMNS[column], random_state=seed)
    reader = reader_of_digits()
    return score_swaps(model, kept, reader, seed=seed)._asdict() | score_plain(model, kept, reader)._asdict()


TABLES = (
    Table(
        name="disentangling-width",
        source=f"{SOURCE}, table 2.1, on validation images",
        caption="Coloured digits, TC without an adversary: style codes, critic steps, objective, noise, passes.",
        rows={f"{width} style codes": {"style": width, "tc_weight": 1.0, **ROW} for width in WIDTHS},
        columns=tuple(COLUMNS),
        metrics=(*METRICS, *PLAIN),
        measure=measure,
        seeds={"cpu": range(2)},
        profiles={"cpu": {}},
        needs=("mnist",),
        notes="5,000 training images of MNIST, 8 epochs, and 2,000 other training images whose codes are swapped: the "
        "setting of `disentangling` is chosen here, so that its test images decide nothing. With the thesis's "
        "objective (`joint=True`) reconstruction and penalty move all codes; elsewhere they move the style code alone. "
        "With three critic steps that objective was not tried. "
        "`acc_plain` and `l2_plain` are the digits read and the squared error without any swap: what Acc_c and Res. l2 "
        "lose beyond them is lost by the swap.",
        higher_is_better={"acc_d": True, "acc_c": True, "res_l2": False, "acc_plain": True, "l2_plain": False},
        formats={"acc_d": ".2%", "acc_c": ".2%", "res_l2": ".1f", "acc_plain": ".2%", "l2_plain": ".1f"},
    ),
)
