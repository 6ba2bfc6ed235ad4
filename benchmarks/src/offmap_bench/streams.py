"""Scoring rows from files, measured in a process of its own: seconds, and memory over that of the loaded model."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch

import offmap
from offmap.files import replacing
from offmap.scale import Roles, score_files
from offmap.scale.ray_cluster import connected
from offmap.scale.threads import available_cores

FEATURES = [f"x{place}" for place in range(20)]
_BLOCK = 1 << 18


class Cost(NamedTuple):
    """What a run took.

    Args:
        seconds: From its beginning to its end.
        cpu_seconds: Those of all cores, in this process.
        megabytes: Memory over that of the process with its model loaded.
        start: Seconds that 1,000 rows take with a Ray that has to be started.
        actors: Seconds that 1,000 rows take with a Ray that runs: the start of its actors.
    """

    seconds: float
    cpu_seconds: float
    megabytes: float
    start: float = 0.0
    actors: float = 0.0

    def per(self, rows: float) -> "Cost":
        """The same with the seconds of one of so many rows."""
        return self._replace(seconds=self.seconds / rows, cpu_seconds=self.cpu_seconds / rows)

    @property
    def cores(self) -> float:
        """How many cores were busy on average."""
        return self.cpu_seconds / self.seconds


def random_rows(rows: int, seed: int = 0) -> pd.DataFrame:
    """Independent standard normal features."""
    return pd.DataFrame(np.random.default_rng(seed).standard_normal((rows, len(FEATURES))), columns=FEATURES)


def rows_file(folder: Path, rows: int) -> Path:
    """A Parquet file of random rows with an id, written once per folder."""
    path = folder / f"rows-{rows}.parquet"
    if path.exists():
        return path
    schema = pa.schema([("id", pa.int64()), *((name, pa.float64()) for name in FEATURES)])
    with replacing(path) as fresh, pq.ParquetWriter(fresh, schema, use_dictionary=False) as writer:
        for start in range(0, rows, _BLOCK):
            block = random_rows(min(_BLOCK, rows - start), seed=start)
            block.insert(0, "id", np.arange(start, start + len(block)))
            writer.write_table(pa.Table.from_pandas(block, schema=schema, preserve_index=False))
    return path


def cost_of(how: str, model: Path, source: list[Path], out: Path, workers: int | None = None) -> Cost:
    """Scores files in a process of its own.

    Args:
        how: "memory" reads the rows first and scores them by one call, of which only the call is timed, with as many
            threads of torch as there are cores; "threads" and "ray" go from files to files, all of which is timed, the
            latter with a Ray that runs already.
        model: The file of the model.
        source: The files.
        out: Where the scores go.
        workers: Threads, or actors of Ray.
    """
    task = {"how": how, "model": str(model), "source": [*map(str, source)], "out": str(out), "workers": workers}
    command = [sys.executable, "-m", "offmap_bench.streams", json.dumps(task)]
    # What a run that was interrupted has left would be refused.
    shutil.rmtree(out.with_name(f"{out.name}.parts"), ignore_errors=True)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"scoring {source[0]} failed: {done.stderr}")
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def _measured(task: dict[str, Any]) -> Cost:
    torch.set_num_threads(available_cores())
    model = offmap.load(task["model"])
    if task["how"] == "memory":
        frame = _read(task["source"])
        return _cost(model, lambda: model.assess(frame))
    if task["how"] == "threads":
        return _cost(model, lambda: _stream(model, task))
    out = Path(task["out"])
    few = {**task, "source": [str(rows_file(out.parent, 1000))], "out": str(out.with_name("few.parquet"))}
    begun = perf_counter()
    with connected():
        _stream(model, few)
        start = perf_counter() - begun
        actors = _cost(model, lambda: _stream(model, few)).seconds
        return _cost(model, lambda: _stream(model, task))._replace(start=start, actors=actors)


def _cost(model: Any, run: Callable[[], Any]) -> Cost:
    # A first call, so that what is loaded and built once counts as the model's memory.
    model.assess(random_rows(2048))
    _forget_peak()
    before, begun, cpu = _memory("VmRSS"), perf_counter(), process_time()
    run()
    return Cost(perf_counter() - begun, process_time() - cpu, (_memory("VmHWM") - before) / 1e3)


def _read(source: list[str]) -> pd.DataFrame:
    return pd.concat([pd.read_parquet(path, columns=FEATURES) for path in source], ignore_index=True)


def _stream(model: Any, task: dict[str, Any]) -> None:
    score_files(
        model, task["source"], task["out"], roles=Roles(id=("id",)), engine=task["how"], workers=task["workers"]
    )


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _memory(name: str) -> int:
    """Kilobytes of this process as Linux counts them; VmHWM is the largest so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def scratch() -> Path:
    """Where the files of these runs are kept from one run to the next."""
    folder = Path(tempfile.gettempdir()) / "offmap-bench-scale"
    folder.mkdir(exist_ok=True)
    return folder


if __name__ == "__main__":
    print(json.dumps(_measured(json.loads(sys.argv[1]))._asdict()))
