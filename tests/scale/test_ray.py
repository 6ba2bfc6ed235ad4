"""Ray on 2 CPUs: the same bytes as without it, and a killed worker loses nothing."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from offmap.data.roles import Roles
from offmap.errors import WorkFailed
from offmap.scale import score_dataset, score_files
from tests.scale.tables import NAMES, fitted, in_memory, numbers, write

ray = pytest.importorskip("ray")
# Ray leaves sockets and files of its own to the end of the process.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    # The filter of a checkpoint, the scorer and the reader take one CPU each.
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield ray
    ray.shutdown()


def test_an_address_that_does_not_answer_is_named_at_once(tmp_path: Path) -> None:
    source = write(numbers(10), tmp_path / "rows.parquet")
    with pytest.raises(WorkFailed, match=r"no Ray cluster answers at 127\.0\.0\.1:1: .*refused"):
        score_files(fitted(), source, tmp_path / "s.parquet", engine="ray", ray_address="127.0.0.1:1")
    with pytest.raises(ValueError, match="ray_address must be host:port"):
        score_files(fitted(), source, tmp_path / "s.parquet", engine="ray", ray_address="nowhere")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.parquet"]


@pytest.mark.usefixtures("cluster")
def test_killed_workers_lose_nothing_and_the_file_is_the_same(tmp_path: Path) -> None:
    model, frame = fitted(), numbers(6000, seed=1)
    source = write(frame, tmp_path / "rows.parquet", group=100)
    score_files(model, source, tmp_path / "threads.parquet", part_rows=100)
    killed, journal = [], tmp_path / "ray.parquet.parts" / "_offmap.jsonl"

    def kill() -> None:
        while not journal.exists() or journal.read_bytes().count(b"\n") < 10:
            time.sleep(0.005)
        for process in Path("/proc").iterdir():
            if process.name.isdecimal() and (process / "cmdline").read_bytes().startswith(b"ray::_PartScorer"):
                killed.append(int(process.name))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    done = score_files(model, source, tmp_path / "ray.parquet", part_rows=100, engine="ray", workers=2)
    killer.join()
    assert killed
    assert done.rows == 6000
    assert (tmp_path / "ray.parquet").read_bytes() == (tmp_path / "threads.parquet").read_bytes()
    pd.testing.assert_frame_equal(pd.read_parquet(done.out), in_memory(model, frame), check_exact=True)


@pytest.mark.usefixtures("cluster")
def test_a_bad_file_is_named_and_the_run_resumes_with_another_engine(tmp_path: Path) -> None:
    model, frame = fitted(), numbers(400, seed=1)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    good = (tmp_path / "rows.csv").read_text()
    stamp = (tmp_path / "rows.csv").stat().st_mtime_ns
    bad = good[: len(good) - 30] + "x" * 20 + good[-10:]
    (tmp_path / "rows.csv").write_text(bad)
    os.utime(tmp_path / "rows.csv", ns=(stamp, stamp))
    with pytest.raises(ValueError, match=r"rows\.csv.*300 scored rows are kept"):
        score_files(model, tmp_path / "rows.csv", tmp_path / "s.csv", part_rows=100, engine="ray", workers=1)
    (tmp_path / "rows.csv").write_text(good)
    os.utime(tmp_path / "rows.csv", ns=(stamp, stamp))
    score_files(model, tmp_path / "rows.csv", tmp_path / "s.csv", part_rows=100, resume=True)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "s.csv"), in_memory(model, frame), check_exact=True)


def test_a_data_set_of_ray_is_scored_and_resumed_by_its_checkpoint(cluster: Any, tmp_path: Path) -> None:
    from ray.data import DataContext
    from ray.data.checkpoint import CheckpointConfig

    model, frame = fitted(), numbers(600, seed=1)
    expected = in_memory(model, frame).drop(columns="row").sort_values("id", ignore_index=True)
    write(frame[:200], tmp_path / "rows.parquet")
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.checkpoint_config = CheckpointConfig(
        id_column="id", checkpoint_path=str(tmp_path / "done"), delete_checkpoint_on_success=False
    )
    try:
        for end in (200, 600):
            write(frame[:end], tmp_path / "rows.parquet")
            dataset = cluster.data.read_parquet(str(tmp_path / "rows.parquet"))
            scored = score_dataset(model, dataset, roles=Roles(id=("id",)), workers=1, batch_rows=64)
            scored.write_parquet(str(tmp_path / "scores"))
    finally:
        context.checkpoint_config = None
    found = pd.read_parquet(tmp_path / "scores").sort_values("id", ignore_index=True)
    # Doubled rows would be here if Ray had scored those again that its checkpoint names.
    pd.testing.assert_frame_equal(found[list(expected)], expected, check_exact=True)
    assert set(NAMES).isdisjoint(found)
