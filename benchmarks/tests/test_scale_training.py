"""The benchmarks of training on two processes and from files, on small workloads."""

from collections.abc import Callable
from typing import Any

import pytest

from offmap_bench.tables.scale_training import SharedTraining, measure_processes
from offmap_bench.tables.scale_training_memory import fit_alone, fit_pairs, fit_rows, fit_shares, fit_towers


def test_two_processes_are_measured_beside_one() -> None:
    found = measure_processes(SharedTraining(batches=2, epochs=1, turns=1), "batches of 8", seed=0)
    assert found["two / one"] == pytest.approx(found["two processes"] / found["one process"])
    assert found["one process"] > 0


@pytest.mark.parametrize("prepare", [fit_pairs, fit_shares, fit_towers, fit_rows])
def test_fits_from_files_are_measured(prepare: Callable[..., Any]) -> None:
    found = fit_alone(prepare, 30_000, seed=0)
    assert found["rows / s"] > 0
    assert found["MiB above the start"] >= 0
