"""The loop from the shell: one act per command, data on standard output."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import offmap
from offmap.commands import app
from tests.loop.worlds import blobs

Run = Callable[..., Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    def run(command: str, *arguments: object, code: int = 0) -> Any:
        words = [command, str(tmp_path / "w"), *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", ["offmap", "world", *words])
        with pytest.raises(SystemExit) as stop:
            app.main()
        out, err = capsys.readouterr()
        assert stop.value.code == code, err
        if code:
            return err
        return json.loads(out) if out and "--json" in words else out

    return run


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    for name, labels, seed in (("train", [0, 1, 2], 0), ("stream", [0, 3, 4], 1)):
        X, y = blobs(labels, 30, seed=seed)
        kind = np.array(["ant", "bee", "cat", "dog", "elk"])[y]
        pd.DataFrame(X, columns=["a", "b"]).assign(kind=kind).to_csv(tmp_path / f"{name}.csv", index=False)
    stream = pd.read_csv(tmp_path / "stream.csv")
    ids = [f"r{row}" for row in range(len(stream))]
    stream.drop(columns="kind").assign(id=ids).to_csv(tmp_path / "stream.csv", index=False)
    pd.DataFrame(
        {"id": ids, "kind": np.array(["ant", "bee", "cat", "dog", "elk"])[blobs([0, 3, 4], 30, seed=1)[1]]}
    ).to_csv(tmp_path / "truth.csv", index=False)
    return tmp_path


def test_a_turn_of_the_loop(run: Run, tables: Path) -> None:
    truth = pd.read_csv(tables / "truth.csv").set_index("id")["kind"]
    settings = ["--set", "width=40", "--set", "calibration=0.4", "--alpha", 0.1, "--label", "kind", "--min-group", 4]
    made = run("create", tables / "train.csv", *settings, "--json", "--quiet")
    assert (made["classes"], made["promise_holds"]) == (3, True)
    observed = run("observe", tables / "stream.csv", "--ids", "id", "--json", "--quiet")
    assert len(observed) == 90
    assert sum(row["novel"] for row in observed) > 50
    found = run("groups", "--json", "--quiet")
    assert len(found) >= 2
    for group in found:
        run("name", group["id"], truth[group["rows"][0]])
    assert "Undone" in run("undo")
    run("redo", "--json")
    for row in run("audit", 40, "--json"):
        run("label", row["id"], truth[row["id"]])
    learnt = run("learn", "--json", "--quiet")
    assert (learnt["classes"], learnt["version"], learnt["promise_holds"]) == (5, 2, True)
    assert run("undo", "--json") == {"undone": "learnt"}
    run("redo")
    run("export", "--out", tables / "model.safetensors")
    model = offmap.load(tables / "model.safetensors")
    rows = pd.DataFrame(blobs([3], 5, seed=8)[0], columns=["a", "b"])
    assert model.predict(rows).tolist().count("dog") >= 4
    assert run("status", "--json")["groups"] == {"learnt": len(found)}


def test_groups_are_decided_on_one_by_one(run: Run, tables: Path) -> None:
    run("create", tables / "train.csv", "--set", "width=40", "--label", "kind", "--quiet")
    run("observe", tables / "stream.csv", "--ids", "id", "--quiet")
    assert "like" in run("groups", "--quiet")
    first = run("groups", "--json", "--quiet")[0]["id"]
    one, other = run("split", first, "--json")["into"]
    run("merge", one, other)
    run("skip", one)
    run("discard", one)
    assert one not in [group["id"] for group in run("groups", "--json", "--quiet")]


def test_every_decision_tells_a_script_the_revision_it_made(run: Run, tables: Path) -> None:
    run("create", tables / "train.csv", "--set", "width=40", "--label", "kind", "--quiet")
    run("observe", tables / "stream.csv", "--ids", "id", "--quiet")
    first, second = (group["id"] for group in run("groups", "--json", "--quiet")[:2])
    seen = run("status", "--json")["revision"]
    for words in (
        ["name", first, "dog"],
        ["skip", second],
        ["discard", second],
        ["move", "r3", first],
        ["merge", first, second],
        ["label", "r5", "ant"],
    ):
        seen += 1
        assert run(*words, "--expected", seen - 1, "--json") == {"revision": seen}


def test_a_mistake_is_one_line(run: Run, tables: Path) -> None:
    assert "holds no world" in run("status", code=2)
    assert "needs --label" in run("create", tables / "train.csv", "--text", "kind", code=2)
    run("create", tables / "train.csv", "--set", "width=40", "--label", "kind", "--quiet")
    for words, message in (
        (["name", 99, "dog"], "there is no group 99"),
        (["learn"], "nothing to learn"),
        (["label", "r1", "dog"], "no row with the id 'r1'"),
        (["create", tables / "train.csv", "--label", "kind"], "holds a world already"),
    ):
        error = run(*words, code=2)
        assert message in error
        assert error.count("\n") == 1


def test_a_stale_decision_is_refused_and_told(run: Run, tables: Path) -> None:
    run("create", tables / "train.csv", "--set", "width=40", "--label", "kind", "--quiet")
    run("observe", tables / "stream.csv", "--ids", "id", "--quiet")
    first, second = (group["id"] for group in run("groups", "--json", "--quiet")[:2])
    seen = run("status", "--json")["revision"]
    run("name", first, "dog", "--expected", seen)
    run("move", "r3", second, "--expected", seen)
    error = run("discard", first, "--expected", seen, code=2)
    assert f"group {first} was named 'dog'" in error
    told = [act["sentence"] for act in run("history", "--after", seen, "--json")]
    assert told == [f"group {first} was named 'dog'", f"row 'r3' was moved into group {second}"]
    assert run("rollback", 1, "--json")["version"] == 1


def test_a_world_in_a_database(run: Run, tables: Path, postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run("create", tables / "train.csv", "--set", "width=40", "--label", "kind", "--store", postgres, "--quiet")
    assert "holds no world" in run("status", code=2)
    monkeypatch.setenv("OFFMAP_STORE", postgres)
    run("observe", tables / "stream.csv", "--ids", "id", "--quiet")
    run("name", run("groups", "--json", "--quiet")[0]["id"], "dog")
    assert run("learn", "--json", "--quiet")["classes"] == 4
    run("export", "--out", tables / "model.safetensors")
    assert "dog" in offmap.load(tables / "model.safetensors").classes_
    monkeypatch.setenv("OFFMAP_STORE", "postgresql://nobody@localhost:1/none")
    assert "cannot use" in run("status", code=1)
