"""The benchmark of streams, on few rows."""

from pathlib import Path

import pytest

from offmap.density import MahalanobisDetector
from offmap_bench.streams import Cost, cost_of, random_rows, rows_file


def test_files_and_memory_are_measured_alike(tmp_path: Path) -> None:
    MahalanobisDetector(random_state=0).fit(random_rows(500, seed=1)).save(tmp_path / "model.safetensors")
    rows, out = rows_file(tmp_path, 3000), tmp_path / "scores.parquet"
    (tmp_path / "scores.parquet.parts").mkdir()
    for how in ("threads", "memory"):
        found = cost_of(how, tmp_path / "model.safetensors", [rows], out)
        assert found.seconds > 0
        assert found.cpu_seconds > 0
    assert out.exists()
    assert not (tmp_path / "scores.parquet.parts").exists()


def test_a_run_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"failed: (.|\n)*no-model"):
        cost_of("threads", tmp_path / "no-model.safetensors", [tmp_path / "rows.parquet"], tmp_path / "s.parquet")


def test_costs_are_per_row() -> None:
    cost = Cost(seconds=4.0, cpu_seconds=6.0, megabytes=100.0)
    assert cost.per(2) == Cost(seconds=2.0, cpu_seconds=3.0, megabytes=100.0)
    assert cost.per(2).cores == cost.cores == 1.5
