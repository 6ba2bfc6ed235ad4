"""How our results compare with every number that a paper prints, so that the page of verdicts leaves none out."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from offmap_bench.claims import Claim, Outcome, judge
from offmap_bench.samples import read_samples
from offmap_bench.table import Table

Tally = Counter[Outcome]


def tally(table: Table, profile: str, results: Path) -> Tally:
    """How many of the printed numbers of a table are beaten, reached, not reached and not run."""
    samples, _ = read_samples(table, profile, results)
    return Counter(
        judge(Claim(item="", table=table.name, row=row, metric=metric, columns=(column,)), table, samples).outcome
        for row, column, metric in table.printed
    )


def tallies(tables: Iterable[Table], results: Path) -> dict[str, Tally]:
    """The tally of each table that has printed numbers, by name."""
    return {table.name: tally(table, table.shown_profile, results) for table in tables if table.printed}
