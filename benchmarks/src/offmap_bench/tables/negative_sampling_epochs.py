"""How the number of epochs changes what generated negatives bring."""

from dataclasses import replace

from offmap_bench.table import Table
from offmap_bench.tables.negative_sampling import GREY, GREY_CPU, METRICS, NEGATIVES, SOURCE, Setting, measure

EPOCHS = {"2 epochs": 2, "4 epochs": 4, "16 epochs": 16}
ROW = "Bernoulli, generated"


def measure_epochs(setting: Setting, column: str, seed: int) -> dict[str, float]:
    """Trains for as many epochs as the column says and measures as the table of negatives does."""
    return measure(replace(setting, epochs=EPOCHS[column]), GREY, seed)


TABLES = (
    Table(
        name="vae-negatives-epochs",
        source=f"{SOURCE}, table 5",
        caption="Fashion-MNIST against MNIST with generated negatives, by the number of epochs.",
        rows={ROW: NEGATIVES.rows[ROW]},
        columns=tuple(EPOCHS),
        metrics=METRICS,
        measure=measure_epochs,
        seeds={"cpu": range(3)},
        profiles={"cpu": GREY_CPU},
        needs=("fashion-mnist", "mnist"),
        notes=f"The row `{ROW}` of `vae-negatives`, which has the numbers of 8 epochs of 125 steps; the paper trains "
        "for 100 epochs of 1,200 steps.",
        higher_is_better={"auroc_bpd": True, "auroc_kl": True},
    ),
)
