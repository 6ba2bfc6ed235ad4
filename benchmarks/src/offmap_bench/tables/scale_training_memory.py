"""Fitting from Parquet files: memory beside the number of rows."""

import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

from offmap.collaborative import ClosedFormDetector, RatioDetector
from offmap.density import VAEDetector
from offmap_bench.table import Table
from offmap_bench.tables.speed import peak_mib

ITEMS, ENTITIES, FEATURES, GROUP = 10_000, 100_000, 20, 250_000


def fit_pairs(folder: Path, count: int, seed: int) -> Callable[[], Any]:
    """Writes pairs of 10,000 items and 100,000 entities; returns the closed form of all of them."""
    return _fit_pairs(ClosedFormDetector(features="fourier", n_neighbors=0, random_state=seed), folder, count, seed)


def fit_shares(folder: Path, count: int, seed: int) -> Callable[[], Any]:
    """Writes the same pairs; returns the fit of all entities as shares of components that a sample has trained."""
    return _fit_pairs(RatioDetector(epochs=1, random_state=seed), folder, count, seed)


def fit_towers(folder: Path, count: int, seed: int) -> Callable[[], Any]:
    """Writes the same pairs; returns one epoch of two towers over all of them, and the fit of all entities."""
    X = _write_pairs(folder, count, seed)
    towers = RatioDetector(head="two_tower", epochs=1, batch_size=512, calibration=0.01, random_state=seed)
    return lambda: towers.fit_files(folder, entity="entity", row="item", X=X, train=True)


def _fit_pairs(detector: Any, folder: Path, count: int, seed: int) -> Callable[[], Any]:
    X = _write_pairs(folder, count, seed)
    few = pq.ParquetFile(folder / "rows.parquet").read_row_group(0).slice(0, 20_000).to_pandas()
    fitted = detector.set_params(calibration=0.0).fit(X, few["entity"], rows=few["item"]).set_params(calibration=0.01)
    return lambda: fitted.fit_files(folder, entity="entity", row="item", X=X)


def _write_pairs(folder: Path, count: int, seed: int) -> NDArray[np.float32]:
    """Writes the pairs; returns the items."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ITEMS, FEATURES)).astype(np.float32)
    most = {"item": ITEMS, "entity": ENTITIES}
    _write(folder, count, lambda size: {name: rng.integers(limit, size=size) for name, limit in most.items()})
    return X


def fit_rows(folder: Path, count: int, seed: int) -> Callable[[], Any]:
    """Writes rows of 20 features; returns one epoch of a variational autoencoder over all of them."""
    rng = np.random.default_rng(seed)
    _write(folder, count, lambda size: {f"x{k}": rng.normal(size=size).astype(np.float32) for k in range(FEATURES)})
    detector = VAEDetector(epochs=1, batch_size=4096, random_state=seed)
    return lambda: detector.fit(folder)


def _write(folder: Path, count: int, draw: Callable[[int], dict[str, Any]]) -> None:
    """Writes a row group at a time, so that the rows are never all in memory."""
    with pq.ParquetWriter(folder / "rows.parquet", pa.table(draw(1)).schema) as writer:
        for start in range(0, count, GROUP):
            writer.write_table(pa.table(draw(min(GROUP, count - start))), row_group_size=GROUP)


def measure_memory(prepare: Callable[[Path, int, int], Callable[[], Any]], column: str, seed: int) -> dict[str, float]:
    """Rows per second and memory of a fit from files, in a process of its own, whose peak is that of the fit."""
    count = int(column.split()[0].replace(",", ""))
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
        return process.submit(fit_alone, prepare, count, seed).result()


def fit_alone(prepare: Callable[[Path, int, int], Callable[[], Any]], count: int, seed: int) -> dict[str, float]:
    """Writes files and fits them; to be called in a fresh process."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        fit = prepare(Path(folder), count, seed)
        before, start = peak_mib(), perf_counter()
        fit()
        return {"rows / s": count / (perf_counter() - start), "MiB above the start": peak_mib() - before}


TABLES = (
    Table(
        name="scale-training-memory",
        source="No paper: the speed of this toolkit",
        caption="Fits from Parquet files: rows per second, and memory, which hardly depends on the number of rows.",
        rows={
            "closed form of pairs": fit_pairs,
            "mixture of pairs": fit_shares,
            "two towers of pairs, one epoch": fit_towers,
            "VAE, one epoch": fit_rows,
        },
        columns=("1,000,000 rows", "10,000,000 rows"),
        metrics=("rows / s", "MiB above the start"),
        measure=measure_memory,
        seeds={"cpu": range(2)},
        profiles={"cpu": {}},
        formats={"rows / s": ",.0f", "MiB above the start": ",.0f"},
        notes="The pairs are of 10,000 items with 20 features and of 100,000 entities with 32 features each; both "
        "passes count. Features, and the network of the mixture, are those of a fit of 20,000 pairs in memory, which "
        "does not count. Two towers train on all pairs, in batches of 512. The VAE has 20 features and batches of "
        "4,096 rows. One thread. Memory is the process's peak (Linux) less the peak before the fit, with the libraries "
        "loaded and the files written.",
    ),
)
