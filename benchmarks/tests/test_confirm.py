"""Stored results that still come out are marked with the commit; the others are measured anew."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from offmap_bench import Table, confirm, make
from offmap_bench.confirm import comes_out
from offmap_bench.provenance import processor
from offmap_bench.run import Cell, FailedRuns, Run, empty_cells, run

NOW = "a" * 40


@pytest.fixture(autouse=True)
def _commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm, "commit", lambda: NOW)


def stored(table: Table, folder: Path) -> dict[tuple[str, str], Cell]:
    cells = [place.stored(folder) for place in empty_cells(table, "cpu")]
    return {(cell.row, cell.column): cell for cell in cells if cell is not None}


def test_cells_that_come_out_are_marked_after_one_seed_each(
    make_table: Callable[..., Table], forests: Any, tmp_path: Path
) -> None:
    before = {(cell.row, cell.column): cell for cell in run(make_table(), results=tmp_path)}
    forests.calls.clear()
    found = confirm.confirm(make_table(), results=tmp_path)
    assert len(forests.calls) == 4
    assert {seed for _, _, seed in forests.calls} == {0}
    assert (len(found.again), len(found.changed)) == (4, 0)
    after = stored(make_table(), tmp_path)
    assert {place: replace(cell, confirmed=None) for place, cell in after.items()} == before
    assert {cell.at for cell in after.values()} == {NOW}
    assert str(confirm.confirm(make_table(), results=tmp_path)) == "0 of 0 cells came out again"
    assert len(forests.calls) == 4


def test_a_cell_that_does_not_come_out_is_measured_anew(
    make_table: Callable[..., Table], forests: Any, tmp_path: Path
) -> None:
    true = {(cell.row, cell.column): cell for cell in run(make_table(), results=tmp_path)}
    wrong = true["large", "shift 3"]
    replace(wrong, runs=tuple(replace(one, metrics={"auroc": 0.123}) for one in wrong.runs), confirmed=NOW[1:]).write(
        tmp_path
    )
    forests.calls.clear()
    found = confirm.confirm(make_table(), results=tmp_path)
    assert [(cell.row, cell.column) for cell in found.changed] == [("large", "shift 3")]
    assert str(found) == "3 of 4 cells came out again; measured anew: row 'large', column 'shift 3'"
    assert len(forests.calls) == 4 + 2
    after = stored(make_table(), tmp_path)["large", "shift 3"]
    assert [one.metrics for one in after.runs] == [one.metrics for one in wrong.runs]
    assert after.confirmed is None


def test_a_cell_that_fails_is_named_and_the_others_are_confirmed(
    make_table: Callable[..., Table], forests: Any, tmp_path: Path
) -> None:
    run(make_table(), results=tmp_path)
    forests.stop = {len(forests.calls) + 1: ImportError("no JAX")}
    with pytest.raises(FailedRuns, match=r"1 of 4 cells failed: row 'large', column 'shift 1': ImportError"):
        confirm.confirm(make_table(), results=tmp_path)
    after = stored(make_table(), tmp_path)
    assert [place for place, cell in after.items() if cell.confirmed != NOW] == [("large", "shift 1")]
    assert all(len(cell.runs) == 3 for cell in after.values())


def test_rows_and_columns_are_chosen_and_cells_of_other_parameters_left_alone(
    make_table: Callable[..., Table], forests: Any, tmp_path: Path
) -> None:
    run(make_table(), results=tmp_path)
    forests.calls.clear()
    confirm.confirm(make_table(), results=tmp_path, rows=["small"], columns=["shift 1"])
    assert forests.calls == [("shift 1", 2, 0)]
    changed = make_table(rows={name: method.set_params(bootstrap=True) for name, method in make_table().rows.items()})
    assert str(confirm.confirm(changed, results=tmp_path)) == "0 of 0 cells came out again"


def test_a_new_run_of_a_confirmed_cell_takes_the_mark_away(make_table: Callable[..., Table], tmp_path: Path) -> None:
    run(make_table(), results=tmp_path, seeds=[0])
    confirm.confirm(make_table(), results=tmp_path)
    assert all(cell.confirmed is None for cell in run(make_table(), results=tmp_path, seeds=[0, 1]))


def cell_of(*runs: Mapping[str, float | None], processor: str | None) -> Cell:
    made = tuple(Run(seed, metrics, 1.0) for seed, metrics in enumerate(runs))
    return Cell("table", "row", "column", "cpu", {}, made, processor=processor, threads=torch.get_num_threads())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"auroc": 0.5, "seconds": 1.0}, {"auroc": 0.5 + 1e-9, "seconds": 9.0}, True),
        ({"auroc": 0.5, "ms to add one": 1.0}, {"auroc": 0.5001, "ms to add one": 1.0}, False),
        ({"auroc": None}, {"auroc": None}, True),
        ({"auroc": None}, {"auroc": 0.0}, False),
    ],
)
def test_runs_are_compared_but_for_times(one: dict[str, float], other: dict[str, float], same: bool) -> None:
    second = {name: 0.9 for name in one}
    assert comes_out(cell_of(one, second, processor=processor()), Run(0, other, 5.0)) is same


@pytest.mark.parametrize(
    ("first", "now", "again"),
    [(0.50, 0.54, True), (0.50, 0.46, True), (0.50, 0.55, False), (None, 0.50, False), (0.50, None, False)],
)
@pytest.mark.parametrize("made_on", [None, "another one"])
def test_on_another_processor_a_run_comes_out_within_three_deviations_of_the_seeds(
    first: float | None, now: float | None, again: bool, made_on: str | None
) -> None:
    cell = cell_of({"auroc": first}, {"auroc": 0.51}, {"auroc": 0.53}, processor=made_on)
    assert comes_out(cell, Run(0, {"auroc": now}, 1.0)) is again


def test_on_another_processor_a_metric_without_spread_comes_out_the_same() -> None:
    assert comes_out(cell_of({"modes": 25.0}, processor=None), Run(0, {"modes": 25.0}, 1.0))
    assert not comes_out(cell_of({"modes": 25.0}, {"modes": 25.0}, processor=None), Run(0, {"modes": 24.0}, 1.0))


def test_on_the_same_processor_another_number_of_threads_rounds_differently() -> None:
    cell = cell_of({"auroc": 0.50}, {"auroc": 0.53}, processor=processor())
    assert not comes_out(cell, Run(0, {"auroc": 0.51}, 1.0))
    assert comes_out(replace(cell, threads=64), Run(0, {"auroc": 0.51}, 1.0))


def test_bad_calls_have_one_clear_error(
    make_table: Callable[..., Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=r"'forests' has only times and speeds, .* use --force"):
        confirm.confirm(make_table(metrics=("seconds",)), results=tmp_path)
    with pytest.raises(ValueError, match="--force and --confirm exclude each other"):
        make("speed-start", force=True, confirm=True, results=tmp_path)
    with pytest.raises(ValueError, match="is a figure, which has no stored runs to confirm"):
        make("vae-likelihoods", confirm=True, results=tmp_path)
    for unfit in (None, NOW + "+"):
        monkeypatch.setattr(confirm, "commit", lambda unfit=unfit: unfit)
        with pytest.raises(ValueError, match="commit the changes under src and benchmarks/src first"):
            confirm.confirm(make_table(), results=tmp_path)
