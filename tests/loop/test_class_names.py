"""Names of classes: a class is one class however its name is typed, and no two are told apart by case alone."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from offmap.loop import OpenWorld
from tests.command_line import Run
from tests.loop.worlds import blobs, classifier
from tests.service.conftest import serving

CLASSES = ["Refund", "Lost card", " padded "]
REFUSED = "label 'refund' differs from the class 'Refund' only in case; use 'Refund', or a clearly different name"


def made(path: Path, classes: list[str] = CLASSES) -> OpenWorld:
    """A world that knows three classes by name, with two groups."""
    world = OpenWorld.create(path, classifier=classifier(), min_group=4)
    X, y = blobs([0, 1, 2], 30)
    world.teach(X, np.array(classes)[y])
    world.observe(blobs([3, 4], 15, seed=1)[0])
    assert len(world.groups()) == 2
    return world


def named(world: OpenWorld, label: str) -> object:
    """What the first group is called after it was named."""
    group = min(world.state.groups)
    world.name(group, label)
    return world.state.groups[group].name


def labelled(world: OpenWorld, label: str) -> object:
    """What the first row is called after it was labelled."""
    row = next(iter(world.state.rows.values()))
    world.label(row.id, label)
    return row.label


@pytest.mark.parametrize("act", [named, labelled])
def test_a_name_that_differs_from_a_known_class_in_case_only_is_refused(
    tmp_path: Path, act: Callable[[OpenWorld, str], object]
) -> None:
    with made(tmp_path / "w") as world:
        before = world.revision
        for label in ("refund", " refund", "refund\n"):
            with pytest.raises(ValueError, match=f"^{REFUSED}$"):
                act(world, label)
        with pytest.raises(ValueError, match="'LOST CARD' differs from the class 'Lost card' only in case"):
            act(world, "LOST CARD")
        assert world.revision == before
        assert act(world, "refunds") == "refunds"


@pytest.mark.parametrize("act", [named, labelled])
def test_spaces_around_a_name_do_not_matter(tmp_path: Path, act: Callable[[OpenWorld, str], object]) -> None:
    with made(tmp_path / "w") as world:
        assert act(world, "\tRefund ") == "Refund"
        assert act(world, "padded") == " padded "
        assert act(world, " padded ") == " padded "
        assert act(world, " new ") == "new"


def test_a_name_that_was_given_but_not_learnt_yet_counts_too(tmp_path: Path) -> None:
    with made(tmp_path / "w") as world:
        one, other = sorted(world.state.groups)
        row, second = [row.id for row in world.state.rows.values() if row.group == other][:2]
        world.name(one, "Top-up")
        with pytest.raises(ValueError, match="'top-up' differs from the class 'Top-up' only in case"):
            world.name(other, "top-up")
        with pytest.raises(ValueError, match="'top-up' differs from the class 'Top-up' only in case"):
            world.label(row, "top-up")
        world.label(row, "Fee")
        with pytest.raises(ValueError, match="'fee' differs from the class 'Fee' only in case"):
            world.label(second, "fee")
        world.name(other, "Top-up")


def test_the_only_group_or_row_of_a_name_may_be_given_another_case(tmp_path: Path) -> None:
    with made(tmp_path / "w") as world:
        assert named(world, "top-up") == "top-up"
        assert named(world, "Top-up") == "Top-up"
        assert labelled(world, "fee") == "fee"
        assert labelled(world, "Fee") == "Fee"
        world.undo()
        world.undo()
        world.name(max(world.state.groups), "FEE")


def test_a_name_that_is_used_no_more_stands_in_nobodys_way(tmp_path: Path) -> None:
    with made(tmp_path / "w") as world:
        one, other = sorted(world.state.groups)
        world.name(one, "Top-up")
        world.discard(one)
        world.name(other, "top-up")


def test_what_unknown_rows_are_called_is_no_class_in_any_case(tmp_path: Path) -> None:
    with made(tmp_path / "w") as world, pytest.raises(ValueError, match="'Unknown' is what unknown rows are called"):
        named(world, "Unknown")


def test_case_counts_where_taught_classes_differ_in_nothing_else(tmp_path: Path) -> None:
    with made(tmp_path / "w", classes=["a", "A", "b"]) as world:
        assert named(world, "B") == "B"
        assert labelled(world, "A") == "A"


def test_the_shell_says_the_same(run: Run, tmp_path: Path) -> None:
    made(tmp_path / "w").close()
    error = run("world", "name", tmp_path / "w", 1, "refund")
    assert (error.code, error.err) == (2, f"offmap: {REFUSED}\n")
    assert run("world", "name", tmp_path / "w", 1, "Refund").code == 0


def test_the_service_says_the_same(tmp_path: Path) -> None:
    made(tmp_path / "w").close()
    with serving(worlds={"cards": tmp_path / "w"}) as client:
        refused = client.post("/v1/worlds/cards/name", json={"group": 1, "label": "refund"})
        assert (refused.status_code, refused.json()["error"]) == (422, REFUSED)
        assert client.post("/v1/worlds/cards/name", json={"group": 1, "label": "Refund"}).status_code == 200


@pytest.mark.parametrize("act", [named, labelled])
def test_a_name_that_would_become_another_when_it_is_learnt_is_refused(
    tmp_path: Path, act: Callable[[OpenWorld, str], object]
) -> None:
    with made(tmp_path / "a.world") as world, pytest.raises(ValueError, match="must not end in NUL"):
        act(world, "Refund\0")
