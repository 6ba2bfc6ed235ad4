"""The stored rates of false alarms of single classes, and of sets that lack a class, against what is promised."""

import pytest

from offmap_bench.places import RESULTS
from offmap_bench.samples import read_samples
from offmap_bench.tables.promises_by_class import BY_CLASS, CLASS_SETS, CLASSIFIERS, COLUMNS

RATES, _ = read_samples(BY_CLASS, "cpu", RESULTS)
MISSED, _ = read_samples(CLASS_SETS, "cpu", RESULTS)
# Standard error of the rate of one class over 100 splits, with the noise of 45 held-out rows.
ERROR = 0.004
CELLS = [(name, column) for name in CLASSIFIERS for column in COLUMNS]


@pytest.mark.parametrize(("name", "column"), CELLS)
def test_rows_of_each_class_are_flagged_at_three_to_seven_percent(name: str, column: str) -> None:
    row = f"{name}, by actual class"
    assert RATES[row, column, "lowest, actual"].mean > 0.03
    assert RATES[row, column, "highest, actual"].mean < 0.07


@pytest.mark.parametrize(("name", "column"), CELLS)
def test_rows_that_are_named_as_each_class_are_flagged_at_most_at_the_rate(name: str, column: str) -> None:
    row = f"{name}, by predicted class"
    assert RATES[row, column, "lowest, predicted"].mean > 0.03
    assert RATES[row, column, "highest, predicted"].mean < 0.05 + 4 * ERROR


@pytest.mark.parametrize(("name", "column"), CELLS)
def test_sets_lack_the_class_of_rows_at_most_at_the_rate(name: str, column: str) -> None:
    row = f"{name}, split"
    assert MISSED[row, column, "lowest"].mean > 0.03
    assert MISSED[row, column, "highest"].mean < 0.05 + 4 * ERROR
