"""Rows that a user gives to a world on the shell: their columns, their ids, and what is shown of them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import offmap
from offmap.data import load
from tests.command_line import Run
from tests.loop.worlds import blobs

NAMES = np.array(["ant", "bee", "cat", "dog", "elk"])
CARDS = [f"my card was {verb} {place}" for verb in ("stolen", "lost") for place in ("today", "abroad", "in a taxi", "")]
WEATHER = [f"will it {verb} {day}" for verb in ("rain", "snow") for day in ("today", "tomorrow", "on Sunday", "soon")]
PIZZA = [f"order a pizza {with_}, please" for with_ in ("with ham", "with olives", "without cheese", "for two", "now")]


@pytest.fixture
def world(run: Run, tmp_path: Path) -> Path:
    """A world that knows three classes of points, taught by a table."""
    X, y = blobs([0, 1, 2], 30)
    pd.DataFrame(X, columns=["a", "b"]).assign(kind=NAMES[y]).to_csv(tmp_path / "train.csv", index=False)
    made = run("world", "create", tmp_path / "w", tmp_path / "train.csv", "--label", "kind", "--set", "width=40", "-q")
    assert made.code == 0, made.err
    return tmp_path / "w"


@pytest.fixture
def texts(run: Run, tmp_path: Path) -> Path:
    """A world of texts, and a stream with texts of an unknown class."""
    train = pd.DataFrame({"said": CARDS + WEATHER, "kind": ["card"] * len(CARDS) + ["weather"] * len(WEATHER)})
    train.to_csv(tmp_path / "train.csv", index=False)
    stream = pd.DataFrame({"key": [f"t{n}" for n in range(len(PIZZA))], "said": PIZZA, "kind": "pizza"})
    stream.to_csv(tmp_path / "stream.csv", index=False)
    words = ("--text", "said", "--label", "kind", "--min-group", 3, "--alpha", 0.3, "--review", 1, "--quiet")
    made = run("world", "create", tmp_path / "w", tmp_path / "train.csv", *words)
    assert made.code == 0, made.err
    return tmp_path / "w"


@pytest.fixture
def pictures(run: Run, tmp_path: Path) -> Path:
    """A world of pictures, and a folder of pictures of an unknown digit."""
    digits = load("digits")
    assert digits.y is not None
    for digit, folder in ((0, "train/zero"), (1, "train/one"), (6, "stream")):
        (tmp_path / folder).mkdir(parents=True)
        for number, picture in enumerate(digits.X[digits.y == digit][:30]):
            Image.fromarray((255 * picture).astype(np.uint8)).save(tmp_path / folder / f"{number:02}.png")
    made = run("world", "create", tmp_path / "w", tmp_path / "train", "--set", "width=40", "--review", 1, "--quiet")
    assert made.code == 0, made.err
    return tmp_path / "w"


def stream(path: Path, **columns: object) -> Path:
    """A table of two known and an unknown class, with more columns in front."""
    X, _ = blobs([0, 1, 3], 10, seed=1)
    frame = pd.DataFrame(X, columns=["a", "b"])
    pd.DataFrame({**columns, **frame}).to_csv(path, index=False)
    return path


def test_columns_are_matched_by_name(run: Run, world: Path, tmp_path: Path) -> None:
    straight = run("world", "observe", world, stream(tmp_path / "straight.csv"), "-q").frame
    frame = pd.read_csv(tmp_path / "straight.csv")
    frame[["b", "a"]].assign(kind="x").to_csv(tmp_path / "turned.csv", index=False)
    turned = run("world", "observe", world, tmp_path / "turned.csv", "-q").frame
    pd.testing.assert_frame_equal(turned.drop(columns="id"), straight.drop(columns="id"))


def test_the_exported_model_knows_its_columns(run: Run, world: Path, tmp_path: Path) -> None:
    found = run("world", "export", world, "--out", tmp_path / "model.safetensors", "--json")
    assert found.data["version"] == 1
    assert offmap.load(tmp_path / "model.safetensors").feature_names_in_.tolist() == ["a", "b"]


def test_a_missing_column_is_named(run: Run, world: Path, tmp_path: Path) -> None:
    stream(tmp_path / "stream.csv")
    pd.read_csv(tmp_path / "stream.csv").drop(columns="b").to_csv(tmp_path / "less.csv", index=False)
    error = run("world", "observe", world, tmp_path / "less.csv", "-q").err
    assert f"{tmp_path / 'less.csv'} lacks the column" in error
    assert "'b'" in error


def test_whole_numbers_are_the_same_row_in_another_file(run: Run, world: Path, tmp_path: Path) -> None:
    (tmp_path / "whole.csv").write_text("id,a,b\nx,9,9\n")
    (tmp_path / "decimal.csv").write_text("id,a,b\nx,9.0,9.0\n")
    for name in ("whole.csv", "decimal.csv"):
        assert run("world", "observe", world, tmp_path / name, "--ids", "id", "-q").code == 0
    assert run("world", "status", world, "--json").data["observed"] == 1


@pytest.mark.parametrize("as_json", [True, False])
def test_observe_prints_the_id_of_each_row(run: Run, world: Path, tmp_path: Path, as_json: bool) -> None:
    table = stream(tmp_path / "stream.csv", key=[f"r{n}" for n in range(30)])
    options = ["--json", "-q"] if as_json else ["-q"]
    for ids in (["--ids", "key"], []):
        found = run("world", "observe", world, table, *ids, *options)
        frame = pd.DataFrame(found.data) if as_json else found.frame
        assert frame.columns[0] == "id"
        if ids:
            assert frame["id"].tolist() == [f"r{n}" for n in range(30)]
    # The numbers that the world gave are those by which it knows the rows.
    assert frame["id"].is_unique
    assert run("world", "label", world, frame["id"][7], "dog").code == 0


def test_a_column_of_ids_that_is_not_there(run: Run, world: Path, tmp_path: Path) -> None:
    error = run("world", "observe", world, stream(tmp_path / "stream.csv"), "--ids", "nope", "-q").err
    assert "--ids must be a column of" in error
    assert "not 'nope'; it has 'a', 'b'" in error
    np.save(tmp_path / "rows.npy", np.zeros((3, 2)))
    error = run("world", "observe", world, tmp_path / "rows.npy", "--ids", "key", "-q").err
    assert "--ids must be left out" in error


def test_other_columns_of_the_stream_are_ignored(run: Run, world: Path, tmp_path: Path) -> None:
    table = stream(tmp_path / "stream.csv", key=[f"r{n}" for n in range(30)], kind="dog", note="seen, not read")
    for ids in (["--ids", "key"], []):
        found = run("world", "observe", world, table, *ids, "-q")
        assert found.code == 0, found.err
        assert len(found.frame) == 30


def test_texts_need_their_column(run: Run, texts: Path, tmp_path: Path) -> None:
    for command in ("observe", "teach"):
        label = ["--label", "kind"] if command == "teach" else []
        error = run("world", command, texts, tmp_path / "stream.csv", *label, "-q").err
        assert "name their column with --text" in error
    error = run("world", "create", tmp_path / "new", tmp_path / "train.csv", "--label", "kind", "-q").err
    assert "name a column of texts with --text" in error


def test_groups_of_texts_show_ids_and_keep_texts_apart(run: Run, texts: Path, tmp_path: Path) -> None:
    seen = run("world", "observe", texts, tmp_path / "stream.csv", "--text", "said", "--ids", "key", "-q")
    assert seen.frame["id"].tolist() == ["t0", "t1", "t2", "t3", "t4"]
    [group] = run("world", "groups", texts, "--json", "-q").data
    shown = " ".join(run("world", "groups", texts, "--rows", 2, "-q").out.split())
    first, second = (f"{key}: {PIZZA[int(key[1:])]}" for key in group["rows"][:2])
    words = shown.replace("│", " ").split()
    assert all(word in words for word in f"{first} | {second}".split())


def test_pictures_go_by_their_files(run: Run, pictures: Path, tmp_path: Path) -> None:
    seen = run("world", "observe", pictures, tmp_path / "stream", "-q")
    assert seen.frame["id"].tolist()[:2] == ["00.png", "01.png"]
    assert ".png" in run("world", "groups", pictures, "-q").out
    for row in run("world", "audit", pictures, 3, "--json").data:
        assert row["id"].endswith(".png")
        assert row["row"] == "image 8 × 8"
    assert "image 8 × 8" in run("world", "audit", pictures, 3).out
    assert run("world", "label", pictures, "03.png", "six").code == 0


def test_another_picture_of_the_same_name_is_refused(run: Run, pictures: Path, tmp_path: Path) -> None:
    run("world", "observe", pictures, tmp_path / "stream", "-q")
    error = run("world", "observe", pictures, tmp_path / "train" / "one", "-q").err
    assert "the id of an image is its path in the folder" in error


def test_numbers_are_shown_with_their_columns_and_ids_without_commas(run: Run, world: Path, tmp_path: Path) -> None:
    table = stream(tmp_path / "stream.csv", key=range(1000, 1030))
    run("world", "observe", world, table, "--ids", "key", "-q")
    drawn = run("world", "audit", world, 2, "--json").data
    assert all(len(row["row"]) == 2 for row in drawn)
    shown = run("world", "audit", world, 2).out
    assert str(drawn[0]["id"]) in shown
    assert f"a {drawn[0]['row'][0]:.4g}, b {drawn[0]['row'][1]:.4g}" in shown
