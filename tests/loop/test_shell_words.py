"""What the commands of a world say: remedies that can be typed, and a sentence where there is nothing to show."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import offmap
from offmap.commands.world_remedies import REMEDIES
from offmap.loop import OpenWorld
from tests.command_line import Run
from tests.loop.worlds import blobs, taught


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A world that knows three classes and has seen nothing else."""
    taught(tmp_path / "w").close()
    return tmp_path / "w"


def observe(run: Run, world: Path, labels: list[int], rows: int = 10) -> None:
    path = world.parent / "stream.csv"
    pd.DataFrame(blobs(labels, rows, seed=1)[0], columns=["a", "b"]).to_csv(path, index=False)
    found = run("world", "observe", world, path, "-q")
    assert found.code == 0, found.err


@pytest.mark.parametrize("remedy", REMEDIES)
def test_the_library_says_what_is_replaced(remedy: str) -> None:
    package = Path(offmap.__file__).parent
    sources = [path.read_text() for folder in ("loop", "store") for path in (package / folder).glob("*.py")]
    assert any(remedy in source for source in sources)
    assert not any(remedy in command for command in REMEDIES.values())


def test_remedies_are_commands(run: Run, world: Path, tmp_path: Path) -> None:
    nowhere, empty = tmp_path / "none", tmp_path / "empty"
    OpenWorld.create(empty, classifier=offmap.openset.AnalyticClassifier()).close()
    np.save(tmp_path / "rows.npy", np.zeros((3, 2)))
    for words, remedy in (
        (["name", world, 99, 3], "'offmap world groups' lists them"),
        (["status", nowhere], "make one with 'offmap world create'"),
        (["observe", empty, tmp_path / "rows.npy"], "teach some with 'offmap world teach'"),
        (["export", empty, "--out", tmp_path / "model.safetensors"], "teach some with 'offmap world teach'"),
    ):
        error = run("world", *words)
        assert error.code == 2
        assert remedy in error.err
        assert "OpenWorld" not in error.err


def test_a_world_that_is_in_use_is_waited_for(run: Run, world: Path) -> None:
    with OpenWorld.open(world):
        error = run("world", "status", world, "--wait", 0.1)
    assert error.code == 1
    assert "pass --wait SECONDS" in error.err


def test_no_groups_wait(run: Run, world: Path) -> None:
    found = run("world", "groups", world)
    assert (found.code, found.out, found.err) == (0, "", "no groups wait for a decision\n")
    assert run("world", "groups", world, "--json", "-q") == (0, "[]\n", "")
    assert run("world", "groups", world, "--status", "named").err == "no groups are named\n"


def test_groups_of_other_statuses(run: Run, world: Path) -> None:
    observe(run, world, [3, 4])
    first, second = (group["id"] for group in run("world", "groups", world, "--json", "-q").data[:2])
    run("world", "name", world, first, 3)
    run("world", "discard", world, second)

    def ids(*statuses: str) -> set[int]:
        words = [word for status in statuses for word in ("--status", status)]
        return {group["id"] for group in run("world", "groups", world, *words, "--json", "-q").data}

    assert ids("named") == {first}
    assert "named: 3" in run("world", "groups", world, "--status", "named", "-q").out
    assert ids("discarded") == {second}
    assert ids("named", "discarded") == {first, second}
    assert ids().isdisjoint({first, second})
    assert run("world", "groups", world, "--status", "lost").code == 2


def test_an_audit_says_why_it_draws_fewer_rows(run: Run, world: Path) -> None:
    found = run("world", "audit", world, 5)
    assert (found.code, found.out) == (0, "")
    assert found.err == "no rows were observed since version 1; observe some first\n"
    assert run("world", "audit", world, 5, "--json", "-q") == (0, "[]\n", "")
    observe(run, world, [0], rows=3)
    found = run("world", "audit", world, 5, "--json")
    assert len(found.data) == 3
    assert found.err == "only 3 of 5 rows: no others were observed since version 1 that could be drawn\n"
    for row in found.data:
        run("world", "label", world, row["id"], 0)
    assert "were audited and labelled; observe more first" in run("world", "audit", world, 5).err


@pytest.mark.parametrize(("act", "done"), [("undo", "undone"), ("redo", "redone")])
def test_nothing_is_left_to_undo_or_redo(run: Run, world: Path, act: str, done: str) -> None:
    if act == "undo":
        run("world", "undo", world)
    assert run("world", act, world) == (0, "", f"there is nothing to {act}\n")
    assert run("world", act, world, "--json").data == {done: None}


def test_nothing_was_decided(run: Run, world: Path) -> None:
    assert run("world", "history", world, "--after", 9) == (0, "", "nothing was decided after revision 9\n")
    assert run("world", "history", world, "--after", 9, "--json").data == []


def test_help_says_what_expected_refuses_and_which_group_stays(run: Run) -> None:
    for command in ("learn", "undo", "redo", "rollback", "teach"):
        assert "anything was decided since" in _words(run("world", command, "--help").out)
    for command in ("name", "move", "label", "discard"):
        assert "group or row has changed since" in _words(run("world", command, "--help").out)
    assert "OTHER into GROUP, which stays; OTHER is closed" in _words(run("world", "merge", "--help").out)


def _words(text: str) -> str:
    return " ".join(text.replace("│", " ").split())
