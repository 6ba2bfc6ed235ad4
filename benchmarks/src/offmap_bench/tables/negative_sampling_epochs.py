"""How much negatives bring after a quarter of the epochs."""

from collections.abc import Callable
from dataclasses import replace

from offmap_bench.table import Table
from offmap_bench.tables.negative_sampling import (
    COLOUR,
    COLOUR_NEGATIVES_CPU,
    GREY,
    GREY_CPU,
    METRICS,
    NEGATIVES,
    NEGATIVES_COLOUR,
    SOURCE,
    Profile,
    Setting,
    measure,
)

EPOCHS = {"2 epochs": 2}
GENERATED, GAUSSIAN, TINY = "Bernoulli, generated", "Gaussian, generated", "Bernoulli, Tiny ImageNet"


def measure_epochs(pair: str) -> Callable[[Setting, str, int], dict[str, float]]:
    """Makes what trains for as many epochs as the column says and measures as the table of negatives does."""
    return lambda setting, column, seed: measure(replace(setting, epochs=EPOCHS[column]), pair, seed)


def shorter(base: Table, number: str, pair: str, cpu: Profile, rows: tuple[str, ...]) -> Table:
    """Rows of a table of negatives, after fewer epochs."""
    return Table(
        name=f"{base.name}-epochs",
        source=f"{SOURCE}, {number}",
        caption=f"Negatives, {pair}, after a quarter of the epochs.",
        rows={row: base.rows[row] for row in rows},
        columns=tuple(EPOCHS),
        metrics=METRICS,
        measure=measure_epochs(pair),
        seeds={"cpu": range(3)},
        profiles={"cpu": cpu},
        needs=base.needs,
        notes=f"Rows of `{base.name}`, which has the numbers of 8 epochs of 125 steps; the paper trains for 100 epochs "
        "of 1,000 steps and more.",
        higher_is_better={"auroc_bpd": True, "auroc_kl": True},
    )


TABLES = (
    shorter(NEGATIVES, "table 5", GREY, GREY_CPU, (GENERATED, GAUSSIAN)),
    shorter(NEGATIVES_COLOUR, "table 4", COLOUR, COLOUR_NEGATIVES_CPU, (GENERATED, GAUSSIAN, TINY)),
)
