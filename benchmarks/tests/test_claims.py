"""Claims of the papers against stored results."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from offmap_bench import everything
from offmap_bench.claims import Claim, judge
from offmap_bench.papers import PAPERS, assigned
from offmap_bench.samples import Sample, read_samples
from offmap_bench.table import Table


def table(higher: bool = True, spec: str = ".2f") -> Table:
    return Table(
        name="t",
        source="Example, Table 1",
        rows={"a": 1, "b": 2},
        columns=("x", "y"),
        metrics=("m",),
        measure=lambda method, column, seed: {"m": 0.0},
        seeds={"cpu": [0]},
        profiles={"cpu": {}},
        higher_is_better={"m": higher},
        formats={"m": spec},
    )


def outcome(values: list[float], printed: float, *, higher: bool = True, spec: str = ".2f") -> str:
    samples = {("a", "x", "m"): Sample(dict(enumerate(values)), 0, printed, False)}
    claim = Claim(item="i", table="t", row="a", columns=("x",), metric="m")
    return judge(claim, table(higher, spec), samples).outcome


@pytest.mark.parametrize(
    ("values", "printed", "expected"),
    [
        ([1.00, 1.02, 0.98], 0.90, "beaten"),
        ([1.00, 1.02, 0.98], 1.00, "reached"),
        ([1.00, 1.02, 0.98], 1.005, "reached"),
        ([1.00, 1.02, 0.98], 1.05, "not reached"),
        # Wide noise does not pass for success: one standard error here is 0.17.
        ([0.70, 1.00, 1.30], 1.20, "not reached"),
        ([0.70, 1.00, 1.30], 0.80, "reached"),
        ([1.00], 0.995, "reached"),
        ([1.00], 0.98, "beaten"),
    ],
)
def test_a_number_is_compared_within_its_noise(values: list[float], printed: float, expected: str) -> None:
    assert outcome(values, printed) == expected


def test_lower_may_be_better_and_shares_are_shown_in_percent() -> None:
    assert outcome([1.0, 1.01], 2.0, higher=False) == "beaten"
    assert outcome([2.0, 2.01], 1.0, higher=False) == "not reached"
    assert outcome([0.839, 0.841], 84.0, spec=".1%") == "reached"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([0.9, 0.8], [0.7, 0.6], "reached"),
        ([0.7, 0.6], [0.9, 0.8], "contradicted"),
        ([0.9, 0.6], [0.8, 0.8], "not reached"),
    ],
)
def test_an_order_is_decided_seed_by_seed(a: list[float], b: list[float], expected: str) -> None:
    samples = {(row, "x", "m"): Sample(dict(enumerate(v)), 0, None, False) for row, v in (("a", a), ("b", b))}
    claim = Claim(item="i", table="t", row="a", above="b", columns=("x",), metric="m")
    found = judge(claim, table(), samples)
    assert (found.outcome, found.seeds, found.theirs) == (expected, 2, "above b")


def test_a_failure_that_does_not_occur_contradicts_and_nothing_is_said_of_what_was_not_run() -> None:
    claim = Claim(item="i", table="t", row="a", columns=("x",), metric="m", at_most=0.5)
    for value, expected in ((0.4, "reached"), (0.6, "contradicted")):
        assert judge(claim, table(), {("a", "x", "m"): Sample({0: value}, 0, None, False)}).outcome == expected
    assert judge(claim, table(), {("a", "x", "m"): Sample({}, 0, None, False)}).outcome == "not run"


def test_a_success_that_does_not_occur_is_not_reached() -> None:
    claim = Claim(item="i", table="t", row="a", columns=("x",), metric="m", at_least=0.5)
    for value, expected in ((0.6, "reached"), (0.4, "not reached")):
        found = judge(claim, table(), {("a", "x", "m"): Sample({0: value}, 0, None, False)})
        assert (found.outcome, found.theirs) == (expected, "at least 0.5")


@pytest.mark.parametrize(("mean", "expected"), [(1.0, "reached"), (1.2, "not reached"), (0.8, "not reached")])
def test_an_estimate_is_as_the_papers_or_not(mean: float, expected: str) -> None:
    undirected = replace(table(), higher_is_better={})
    claim = Claim(item="i", table="t", row="a", columns=("x",), metric="m")
    samples = {("a", "x", "m"): Sample({0: mean}, 0, 1.0, False)}
    assert judge(claim, undirected, samples).outcome == expected


def test_results_of_other_parameters_are_marked() -> None:
    claim = Claim(item="i", table="t", row="a", columns=("x",), metric="m")
    assert judge(claim, table(), {("a", "x", "m"): Sample({0: 2.0}, 0, 2.0, True)}).ours == "2.00†"


def test_columns_are_averaged_by_default() -> None:
    samples = {("a", column, "m"): Sample({0: value}, 0, value, False) for column, value in (("x", 1.0), ("y", 3.0))}
    found = judge(Claim(item="i", table="t", row="a", metric="m"), table(), samples)
    assert (found.ours, found.theirs, found.outcome) == ("2.00", "2.00", "reached")


def test_every_claim_names_what_exists_and_every_table_is_on_one_page(tmp_path: Path) -> None:
    known = {item.name: item for item in everything()}
    for page in PAPERS:
        assert set(page.items) <= set(known)
        for claim in page.claims:
            assert claim.table in page.items
            found = known[claim.table]
            assert isinstance(found, Table)
            samples, _ = read_samples(found, next(iter(found.profiles)), tmp_path)
            assert judge(claim, found, samples).outcome == "not run"
            for column in claim.columns or found.columns:
                printed = samples[claim.row, column, claim.metric].printed
                assert (
                    claim.above
                    or claim.at_most
                    or claim.at_least
                    or not math.isnan(float(str(printed).partition("±")[0]))
                )
    shown = [item.name for _, items in assigned(PAPERS, known.values()) for item in items]
    assert sorted(shown) == sorted(known)
