"""Rows of a named group are learnt as the class of rows around them, and move to a class that is named later."""

from pathlib import Path
from typing import Any

import numpy as np

from offmap.loop import OpenWorld
from tests.loop.worlds import blobs, taught


def with_strays(path: Path, stray: int, decided: bool = True, **settings: Any) -> tuple[OpenWorld, int, list[str]]:
    """A world with a group of class 3 that was merged with one of another class, named 3, and the rows of the latter.

    With ``decided``, a person has labelled the first stray row and moved the second one.
    """
    world = taught(path, review=1.0, **settings)
    world.observe(blobs([3], 30, seed=1)[0], ids=range(30))
    strays = [f"stray {row}" for row in range(12)]
    world.observe(blobs([stray], len(strays), seed=2)[0], ids=strays)
    group = _group_of(world, 0)
    other = _group_of(world, "stray 2")
    assert group != other
    world.merge(group, other)
    if decided:
        world.move("stray 1", group)
        world.label("stray 0", 3)
    world.name(group, 3)
    return world, group, strays


def _group_of(world: OpenWorld, row: int | str) -> int:
    return max(world.groups(), key=lambda view: (row in view.rows, view.size)).id


def _classes(world: OpenWorld, rows: list[str]) -> set[Any]:
    return {world.state.taught.get(world.state.numbers[row]) for row in rows} - {None}


def test_unread_rows_of_a_named_group_are_learnt_as_their_own_class_and_those_of_the_person_as_named(
    tmp_path: Path,
) -> None:
    world, group, strays = with_strays(tmp_path / "w", stray=0)
    with world:
        before = world.state.to_bytes()
        world.learn()
        assert _classes(world, strays[:2]) == {3}
        assert _classes(world, strays[2:]) == {0}
        moved = sum(world.state.numbers[row] in world.state.groups[group].rows for row in strays[2:])
        assert moved >= 5
        learnt = [view for view in world.groups("learnt") if view.id == group]
        assert [view.reassigned for view in learnt] == [moved]
        assert world.status().reassigned == moved
        after = world.state.to_bytes()
        world.undo()
        assert world.state.to_bytes() == before
        assert world.status().reassigned == 0
        world.redo()
        assert world.state.to_bytes() == after


def test_every_row_of_a_named_group_keeps_the_name_if_rows_are_not_reassigned(tmp_path: Path) -> None:
    world, group, strays = with_strays(tmp_path / "w", stray=0, reassign=False)
    with world:
        world.learn()
        assert _classes(world, strays) == {3}
        assert world.status().reassigned == 0
        assert {world.state.taught[number] for number in world.state.groups[group].rows} == {3}


def test_rows_learnt_as_one_class_move_to_another_that_is_named_later(tmp_path: Path) -> None:
    world, _, strays = with_strays(tmp_path / "w", stray=4, decided=False)
    with world:
        world.learn()
        early = [row for row in strays if world.state.numbers[row] in world.state.taught]
        assert _classes(world, strays) == {3}
        world.observe(blobs([4], 30, seed=3)[0], ids=[f"late {row}" for row in range(30)])
        late = max(world.groups(), key=lambda group: sum(str(row).startswith("late") for row in group.rows))
        world.name(late.id, 4)
        before = world.state.to_bytes()
        world.learn()
        assert _classes(world, early) == {4}
        # The model is that of the classes as they are now: no trace of the earlier ones is left.
        model = world.classifier
        held = [model.row_labels_[place] for place in _places(model.rows_, world.rows(early))]
        assert held == [4] * len(early)
        world.undo()
        assert world.state.to_bytes() == before


def test_a_row_that_leaves_its_group_no_longer_counts_as_moved(tmp_path: Path) -> None:
    world, group, strays = with_strays(tmp_path / "w", stray=0)
    with world:
        number = world.state.numbers[strays[1]]
        assert world.state.rows[number].moved
        halves = world.split(group)
        assert world.state.rows[number].group in halves
        assert not world.state.rows[number].moved


def _places(rows: np.ndarray, wanted: np.ndarray) -> list[int]:
    return [int(place) for row in wanted for place in np.flatnonzero((rows == row.astype(np.float32)).all(axis=1))]


def test_a_moved_row_stays_in_its_group_when_a_lesson_makes_the_model_know_it(tmp_path: Path) -> None:
    with taught(tmp_path / "w") as world:
        world.observe(blobs([3], 20, seed=1)[0], ids=[f"three {row}" for row in range(20)])
        world.observe(blobs([4], 20, seed=2)[0], ids=[f"four {row}" for row in range(20)])
        three, four = _group_of(world, "three 0"), _group_of(world, "four 0")
        moved = next(row for row in _rows_of(world, four) if row != "four 0")
        world.move(moved, three)
        world.name(four, 4)
        world.learn()
        number = world.state.numbers[moved]
        assert world.state.rows[number].group == three
        world.name(three, 3)
        world.learn()
        assert world.state.taught[number] == 3


def test_rows_that_a_person_labelled_otherwise_are_not_counted_as_reassigned(tmp_path: Path) -> None:
    with taught(tmp_path / "w", review=1.0, reassign=False) as world:
        world.observe(blobs([3], 20, seed=1)[0], ids=range(20))
        group = _group_of(world, 0)
        labelled = next(row for row in _rows_of(world, group) if row != 0)
        world.name(group, 3)
        world.label(labelled, 0)
        world.learn()
        assert world.state.taught[world.state.numbers[labelled]] == 0
        assert world.status().reassigned == 0


def _rows_of(world: OpenWorld, group: int) -> list[Any]:
    return next(list(view.rows) for view in world.groups() if view.id == group)
