"""Worlds that are made and taught on the shell, and what a failure leaves behind."""

from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest

from offmap.loop import OpenWorld
from tests.command_line import Run
from tests.loop.worlds import blobs

NAMES = np.array(["ant", "bee", "cat", "dog", "elk"])
CREATE = ("--label", "kind", "--set", "width=40", "--quiet")


def table(path: Path, labels: list[int], rows: int = 30) -> Path:
    X, y = blobs(labels, rows)
    pd.DataFrame(X, columns=["a", "b"]).assign(kind=NAMES[y]).to_csv(path, index=False)
    return path


@pytest.fixture
def train(tmp_path: Path) -> Path:
    return table(tmp_path / "train.csv", [0, 1, 2])


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training fails in a way that cannot be seen before."""

    def teach(*rows: object, **options: object) -> int:
        raise ValueError("the rows are of no use")

    monkeypatch.setattr(OpenWorld, "teach", teach)


@pytest.mark.parametrize(
    ("labels", "rows", "message"), [([0, 1], 1, "a single row per class"), ([0], 9, "one class only")]
)
def test_rows_that_teach_nothing_make_no_world(
    run: Run, tmp_path: Path, labels: list[int], rows: int, message: str
) -> None:
    error = run("world", "create", tmp_path / "w", table(tmp_path / "few.csv", labels, rows), *CREATE)
    assert (error.code, message in error.err) == (2, True)
    assert not (tmp_path / "w").exists()


def test_a_failed_lesson_leaves_no_folder(
    run: Run, tmp_path: Path, train: Path, failing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "of no use" in run("world", "create", tmp_path / "w", train, *CREATE).err
    assert not (tmp_path / "w").exists()
    monkeypatch.undo()
    assert run("world", "create", tmp_path / "w", train, *CREATE).code == 0


def test_a_folder_that_was_there_stays_and_can_be_taught(
    run: Run, tmp_path: Path, train: Path, failing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "notes.txt").write_text("mine")
    error = run("world", "create", tmp_path / "w", train, *CREATE).err
    assert "has no classes yet: teach some with 'offmap world teach'" in error
    assert (tmp_path / "w" / "notes.txt").read_text() == "mine"
    monkeypatch.undo()
    assert "'offmap world teach'" in run("world", "observe", tmp_path / "w", train).err
    taught = run("world", "teach", tmp_path / "w", train, "--label", "kind", "--json", "-q").data
    assert (taught["classes"], taught["version"]) == (3, 1)


def test_a_world_without_classes_in_a_database_can_be_taught(
    run: Run, train: Path, failing: None, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"unfinished-{uuid4()}"
    error = run("world", "create", name, train, *CREATE, "--store", postgres).err
    assert "has no classes yet: teach some with 'offmap world teach'" in error
    monkeypatch.undo()
    words = ("--label", "kind", "--store", postgres, "--json", "-q")
    assert run("world", "teach", name, train, *words).data["classes"] == 3
    assert "'offmap world teach'" in run("world", "create", name, train, *CREATE, "--store", postgres).err


def test_more_classes_are_taught(run: Run, tmp_path: Path, train: Path) -> None:
    run("world", "create", tmp_path / "w", train, *CREATE)
    more = table(tmp_path / "more.csv", [3])
    assert "needs --label COLUMN" in run("world", "teach", tmp_path / "w", more, "-q").err
    taught = run("world", "teach", tmp_path / "w", more, "--label", "kind", "--json", "-q").data
    assert (taught["classes"], taught["version"]) == (4, 2)
    stale = run("world", "teach", tmp_path / "w", more, "--label", "kind", "--expected", 1, "-q")
    assert (stale.code, "version 2 was taught" in stale.err) == (2, True)


def test_a_world_that_is_there_is_taught_and_not_made_again(run: Run, tmp_path: Path, train: Path) -> None:
    run("world", "create", tmp_path / "w", train, *CREATE)
    error = run("world", "create", tmp_path / "w", train, *CREATE)
    assert (error.code, error.err.count("\n")) == (2, 1)
    assert "holds a world already" in error.err
    assert "'offmap world teach'" in error.err
    assert "'offmap world observe'" in error.err
    assert run("world", "status", tmp_path / "w", "--json").data["classes"] == 3


def test_review_decides_which_rows_wait(run: Run, tmp_path: Path, train: Path) -> None:
    stream = table(tmp_path / "stream.csv", [0, 1, 2])
    waiting = {}
    for review in (0, 1):
        world = tmp_path / f"w{review}"
        run("world", "create", world, train, *CREATE, "--set", "calibration=0.4", "--review", review)
        run("world", "observe", world, stream, "-q")
        waiting[review] = run("world", "status", world, "--json").data["waiting"]
    assert waiting[0] < 20
    assert waiting[1] == 90


def test_a_model_is_exported_to_safetensors_only(run: Run, tmp_path: Path, train: Path) -> None:
    run("world", "create", tmp_path / "w", train, *CREATE)
    error = run("world", "export", tmp_path / "w", "--out", tmp_path / "so.txt")
    assert (error.code, "must end in .safetensors" in error.err) == (2, True)
    assert not (tmp_path / "so.txt").exists()
