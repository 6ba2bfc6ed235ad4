"""Rows from Parquet files: all of them once per epoch, shuffled, shared, and clear errors that name the file."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from offmap.data.parquet_rows import ParquetRows
from offmap.data.samplers import ParquetBatches
from offmap.density import MahalanobisDetector, VAEDetector
from offmap.distributed import Processes
from offmap.errors import WorkFailed
from offmap.random_state import local_seed


def written(folder: Path, rows: int, files: int = 3, group: int = 70) -> np.ndarray:
    """Numbered rows, in the order of their numbers."""
    X = np.random.default_rng(0).normal(size=(rows, 3))
    X[:, 0] = np.arange(rows)
    for place, part in enumerate(np.array_split(X, files)):
        frame = pd.DataFrame(part, columns=["number", "a", "b"])
        frame.to_parquet(folder / f"part-{place}.parquet", row_group_size=group)
    return X


def epoch(batches: ParquetBatches, seed: int = 0) -> list[torch.Tensor]:
    with local_seed(seed):
        return [rows for (rows,) in batches]


@pytest.mark.parametrize("buffer", [1, 150, 10_000])
def test_each_row_comes_once_per_epoch(tmp_path: Path, buffer: int) -> None:
    X = written(tmp_path, 1001)
    batches = ParquetBatches(ParquetRows.open(tmp_path), size=64, buffer=buffer, left_out=np.array([0, 5, 500, 1000]))
    found = epoch(batches)
    assert len(found) == len(batches) == 16
    assert {len(rows) for rows in found} <= {62, 63}
    rows = torch.cat(found).numpy()
    rows = rows[rows[:, 0].argsort()]
    np.testing.assert_allclose(rows, np.delete(X, [0, 5, 500, 1000], axis=0), rtol=1e-6)


def test_rows_are_shuffled_anew_each_epoch_and_alike_for_a_seed(tmp_path: Path) -> None:
    written(tmp_path, 1000)
    batches = ParquetBatches(ParquetRows.open(tmp_path), size=100, buffer=2000)
    first, again, other = (torch.cat(epoch(batches, seed))[:, 0].numpy() for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert abs(np.corrcoef(first, other)[0, 1]) < 0.1
    assert abs(np.corrcoef(first, np.arange(1000))[0, 1]) < 0.1
    # The means of well mixed batches of 100 of 1,000 numbers differ by about 29.
    assert np.ptp(first.reshape(10, 100).mean(axis=1)) < 200


@pytest.mark.parametrize("count", [2, 3])
def test_processes_read_different_rows_in_as_many_steps(tmp_path: Path, count: int) -> None:
    written(tmp_path, 1001, group=90)
    batches = ParquetBatches(ParquetRows.open(tmp_path), size=64, buffer=300)
    shares = [epoch(batches.shared(Processes(rank, count))) for rank in range(count)]
    assert {len(share) for share in shares} == {len(batches)}
    assert all(len(rows) > 0 for share in shares for rows in share)
    numbers = torch.cat([rows[:, 0] for share in shares for rows in share]).numpy()
    np.testing.assert_array_equal(np.sort(numbers), np.arange(1001))


def test_rows_by_number(tmp_path: Path) -> None:
    X = written(tmp_path, 500)
    numbers = np.array([0, 1, 69, 70, 333, 499])
    np.testing.assert_array_equal(ParquetRows.open(tmp_path).at(numbers), X[numbers])
    assert ParquetRows.open(tmp_path / "part-1.parquet", columns=["b"]).columns == ("b",)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    written(tmp_path, 300)
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        ParquetRows.open(tmp_path / "absent")
    (tmp_path / "part-1.parquet").write_bytes(b"not parquet")
    with pytest.raises(ValueError, match=r"part-1\.parquet is damaged or no Parquet file"):
        ParquetRows.open(tmp_path)
    pd.DataFrame({"number": [1.0], "a": [1.0]}).to_parquet(tmp_path / "part-1.parquet")
    with pytest.raises(ValueError, match=r"part-1\.parquet lacks the column 'b'"):
        ParquetRows.open(tmp_path)
    pd.DataFrame({"number": [1.0], "a": [1.0], "b": ["x"]}).to_parquet(tmp_path / "part-1.parquet")
    with pytest.raises(ValueError, match=r"part-1\.parquet: the column 'b' holds (large_)?string"):
        ParquetRows.open(tmp_path)
    pd.DataFrame({"number": [1.0, 2.0], "a": [1.0, np.nan], "b": [1.0, 2.0]}).to_parquet(tmp_path / "part-1.parquet")
    with pytest.raises(WorkFailed, match=r"part-1\.parquet holds a missing or infinite value: row 1, column 'a'"):
        epoch(ParquetBatches(ParquetRows.open(tmp_path), size=10))


def test_damage_inside_a_file_is_named_in_training(tmp_path: Path) -> None:
    written(tmp_path, 3000, files=1)
    path = tmp_path / "part-0.parquet"
    content = bytearray(path.read_bytes())
    content[2000:12000] = bytes(10000)
    path.write_bytes(content)
    with pytest.raises(WorkFailed, match=r"cannot read .*part-0\.parquet"):
        epoch(ParquetBatches(ParquetRows.open(tmp_path), size=10))


def test_too_few_row_groups_for_the_processes_are_refused(tmp_path: Path) -> None:
    written(tmp_path, 300, files=1, group=300)
    with pytest.raises(ValueError, match="1 row groups are too few"):
        epoch(ParquetBatches(ParquetRows.open(tmp_path), size=10).shared(Processes(0, 2)))


def rows(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 1))
    return np.hstack([x + 0.1 * rng.normal(size=(count, 1)), -x, 1e12 + 1e3 * rng.normal(size=(count, 1))])


def test_an_autoencoder_trains_from_files_as_from_memory(tmp_path: Path) -> None:
    X, fresh = rows(3000, 0), rows(4000, 1)
    for place, part in enumerate(np.split(X, 3)):
        pd.DataFrame(part, columns=["a", "b", "time"]).to_parquet(tmp_path / f"{place}.parquet", row_group_size=250)
    settings: dict[str, Any] = {"hidden": (16,), "epochs": 8, "lr": 1e-2, "random_state": 0}
    from_files = VAEDetector(**settings).fit(tmp_path)
    in_memory = VAEDetector(**settings).fit(pd.DataFrame(X, columns=["a", "b", "time"]))
    frame = pd.DataFrame(fresh, columns=["a", "b", "time"])
    assert len(from_files.calibration_novelty_) == 300
    assert 0.03 < (from_files.predict(frame) == -1).mean() < 0.07
    assert np.corrcoef(from_files.novelty(frame), in_memory.novelty(frame))[0, 1] > 0.75
    broken = frame.assign(b=frame["b"].to_numpy()[::-1])
    assert np.median(from_files.novelty(broken)) > from_files.threshold_
    again = VAEDetector(**settings).fit(tmp_path)
    np.testing.assert_array_equal(again.novelty(frame), from_files.novelty(frame))


def test_methods_that_need_all_rows_refuse_a_path(tmp_path: Path) -> None:
    written(tmp_path, 300)
    with pytest.raises(ValueError, match="MahalanobisDetector needs all rows in memory"):
        MahalanobisDetector().fit(tmp_path)
    with pytest.raises(ValueError, match='calibration="cv"'):
        VAEDetector(calibration="cv").fit(tmp_path)
