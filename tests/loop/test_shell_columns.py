"""Columns that a user of the shell leaves out: they are neither taught nor needed, whichever file still has them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from offmap.loop import OpenWorld
from tests.command_line import Run
from tests.loop.worlds import blobs, classifier

NAMES = np.array(["ant", "bee", "cat", "dog", "elk"])
COMMON = ("--label", "kind", "--set", "width=40", "--quiet")


def table(path: Path, labels: list[int], seed: int = 0) -> Path:
    """Two features between a number that would spoil every distance, a text and a column with gaps."""
    X, y = blobs(labels, 30, seed)
    places = np.arange(len(y))
    frame = pd.DataFrame({"key": 1000 * places, "a": X[:, 0], "note": "seen, not read", "b": X[:, 1]})
    frame.assign(gaps=np.where(places % 2, np.nan, 7.0), kind=NAMES[y]).to_csv(path, index=False)
    return path


@pytest.fixture
def train(tmp_path: Path) -> Path:
    return table(tmp_path / "train.csv", [0, 1, 2])


LEFT_OUT = {
    "drop": ("--drop", "key", "--drop", "note", "--drop", "gaps"),
    "only": ("--only", "a", "--only", "b"),
    "id": ("--id", "key", "--drop", "note", "--drop", "gaps"),
}


@pytest.mark.parametrize("option", LEFT_OUT)
def test_columns_left_out_of_a_new_world_are_ignored_from_then_on(
    run: Run, tmp_path: Path, train: Path, option: str
) -> None:
    made = run("world", "create", tmp_path / "w", train, *COMMON, *LEFT_OUT[option])
    assert made.code == 0, made.err
    stream = table(tmp_path / "stream.csv", [0, 3], seed=1)
    pd.read_csv(stream)[["b", "a"]].to_csv(tmp_path / "plain.csv", index=False)
    whole, plain = (
        run("world", "observe", tmp_path / "w", tmp_path / name, "-q") for name in ("stream.csv", "plain.csv")
    )
    assert whole.code == 0, whole.err
    pd.testing.assert_frame_equal(whole.frame.drop(columns="id"), plain.frame.drop(columns="id"))
    assert whole.frame["novel"].sum() > 20
    more = run("world", "teach", tmp_path / "w", table(tmp_path / "more.csv", [4]), "--label", "kind", "-q", "--json")
    assert more.data["classes"] == 4
    with OpenWorld.open(tmp_path / "w") as world:
        assert world.state.columns == ["a", "b"]


def test_a_column_left_out_may_name_the_rows_of_the_stream(run: Run, tmp_path: Path, train: Path) -> None:
    run("world", "create", tmp_path / "w", train, *COMMON, *LEFT_OUT["drop"])
    seen = run("world", "observe", tmp_path / "w", table(tmp_path / "stream.csv", [0]), "--ids", "key", "-q")
    assert seen.frame["id"].tolist() == [1000 * place for place in range(30)]


def test_an_exported_model_scores_the_file_that_the_world_observed(run: Run, tmp_path: Path, train: Path) -> None:
    run("world", "create", tmp_path / "w", train, *COMMON, *LEFT_OUT["drop"])
    stream = table(tmp_path / "stream.csv", [0, 3], seed=1)
    seen = run("world", "observe", tmp_path / "w", stream, "--ids", "key", "-q").frame
    run("world", "export", tmp_path / "w", "--out", tmp_path / "model.safetensors")
    pd.read_csv(stream)[["kind", "b", "note", "a", "key"]].to_csv(tmp_path / "turned.csv", index=False)
    for name in ("stream.csv", "turned.csv"):
        scored = run("score", tmp_path / "model.safetensors", tmp_path / name)
        assert scored.code == 0, scored.err
        np.testing.assert_allclose(scored.frame["novelty"], seen["novelty"])
    pd.read_csv(stream)[["a", "key"]].to_csv(tmp_path / "lacking.csv", index=False)
    assert (
        "lacks 'b', which the model was fitted on"
        in run("score", tmp_path / "model.safetensors", tmp_path / "lacking.csv").err
    )


def test_a_world_whose_first_lesson_failed_is_finished_without_the_columns(
    run: Run, tmp_path: Path, train: Path
) -> None:
    OpenWorld.create(tmp_path / "w", classifier=classifier()).close()
    taught = run("world", "teach", tmp_path / "w", train, "--label", "kind", *LEFT_OUT["drop"], "--json", "-q")
    assert taught.data["classes"] == 3
    with OpenWorld.open(tmp_path / "w") as world:
        assert world.state.columns == ["a", "b"]


def test_a_column_that_is_not_there_makes_no_world(run: Run, tmp_path: Path, train: Path) -> None:
    error = run("world", "create", tmp_path / "w", train, *COMMON, "--drop", "nope")
    assert (error.code, error.err.count("\n")) == (2, 1)
    assert f"drop must be a column of {train}, not 'nope'" in error.err
    assert not (tmp_path / "w").exists()
