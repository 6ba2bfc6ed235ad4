"""``torchrun -m offmap fit``: one model file from two processes, and none if a process is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from torch import Tensor, nn
from torch.optim import SGD, Adam

import offmap
from offmap.distributed import Processes
from offmap.errors import WorkFailed
from offmap.train import Batch, Batches, descend, train
from tests.command_line import Run
from tests.scale import processes as several
from tests.scale.test_distributed import ROWS
from tests.training_runs import squares


def torchrun(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "offmap"]
    return subprocess.run([*launcher, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)


def test_two_processes_read_their_own_row_groups_and_write_one_model(tmp_path: Path, run: Run) -> None:
    X = np.random.default_rng(0).normal(size=(900, 3))
    (tmp_path / "rows").mkdir()
    for place, part in enumerate(np.split(X, 3)):
        pd.DataFrame(part, columns=list("abc")).to_parquet(tmp_path / "rows" / f"{place}.parquet", row_group_size=100)
    command = ["fit", "vae", "rows", "--stream", "--out", "model.safetensors", "--set", "epochs=2", "--json"]
    done = torchrun(tmp_path, *command)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"model"') == done.stderr.count("wrote model.safetensors") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.safetensors", "rows"]
    model = offmap.load(tmp_path / "model.safetensors")
    assert (len(model.calibration_novelty_), len(model.history_["kl"])) == (90, 2)
    pd.DataFrame(X, columns=list("abc")).to_parquet(tmp_path / "all.parquet")
    assert len(run("score", tmp_path / "model.safetensors", tmp_path / "all.parquet").frame) == 900


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [("vae", ["--label", "a"], "--label must be left out with --stream"), ("msp", [], "MSPClassifier is none")],
)
def test_what_cannot_be_streamed_is_refused(
    tmp_path: Path, run: Run, method: str, options: list[str], message: str
) -> None:
    pd.DataFrame({"a": np.arange(50.0)}).to_parquet(tmp_path / "rows.parquet")
    refused = run("fit", method, tmp_path / "rows.parquet", "--stream", *options, "--out", tmp_path / "m.safetensors")
    assert refused.code == 2
    assert message in refused.err


def exit_codes(target: Callable[[Path, int], None], folder: Path) -> list[int | None]:
    """Runs ``target(folder, rank)`` in two new processes until they end."""
    started = [several.context().Process(target=target, args=(folder, rank)) for rank in range(2)]
    for process in started:
        process.start()
    for process in started:
        process.join(timeout=120)
    return [process.exitcode for process in started]


def optimised(_: Processes) -> None:
    """Makes an optimizer, whose import of torch's compiler reaches for the group of processes."""
    Adam(nn.Linear(2, 1).parameters())


def threads_after(folder: Path, rank: int) -> None:
    """Trains with others, and writes the names of the threads that are left."""
    several.work_at(f"file://{folder}/meeting?rank={rank}&world_size=2", optimised, ())
    names = [name.read_text().strip() for name in Path("/proc/self/task").glob("*/comm")]
    (folder / f"threads-{rank}").write_text("\n".join(names))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the names of threads are read from /proc")
def test_no_thread_of_the_group_is_left_to_abort_the_process_at_its_end(tmp_path: Path) -> None:
    assert exit_codes(threads_after, tmp_path) == [0, 0]
    for rank in range(2):
        assert "gloo" not in (tmp_path / f"threads-{rank}").read_text()


def killed(processes: Processes, folder: Path) -> None:
    """Trains and writes a file, but the second process is killed on the way."""
    network = nn.Linear(2, 1)
    optimizer = SGD(network.parameters(), lr=0.1)
    step = descend(optimizer, squares(network))

    def deadly(batch: Batch) -> dict[str, Tensor]:
        if processes.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(batch)

    train(deadly, Batches((ROWS,), size=9), epochs=2, state={"network": network})
    (folder / "model").touch()


def told(folder: Path, rank: int) -> None:
    """Runs ``killed`` and keeps what it said."""
    try:
        several.work_at(f"file://{folder}/meeting?rank={rank}&world_size=2", killed, (folder,))
    except WorkFailed as error:
        (folder / "message").write_text(str(error))


def test_a_killed_process_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    assert exit_codes(told, tmp_path)[1] == -signal.SIGKILL
    assert (tmp_path / "message").read_text().startswith("training stopped: process 1 of 2 does not answer")
    assert not (tmp_path / "model").exists()
