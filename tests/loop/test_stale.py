"""Acts that were decided upon before another one changed what they are about."""

from collections.abc import Callable
from typing import Any

import pytest

from offmap.loop import OpenWorld, StaleActError
from tests.loop.worlds import blobs


def pair(world: OpenWorld) -> tuple[int, int]:
    one, other = sorted(group.id for group in world.groups())
    return one, other


def test_the_revision_counts_entries_and_the_status_shows_it(world: OpenWorld) -> None:
    one, _ = pair(world)
    before = world.revision
    world.name(one, 3)
    assert world.revision == before + 1 == world.status().revision
    world.undo()
    assert world.revision == before + 2


ACTS: dict[str, Callable[[OpenWorld, int, int, int], Any]] = {
    "name": lambda world, one, other, seen: world.name(one, 4, expected=seen),
    "merge": lambda world, one, other, seen: world.merge(one, other, expected=seen),
    "merge the other way": lambda world, one, other, seen: world.merge(other, one, expected=seen),
    "split": lambda world, one, other, seen: world.split(one, expected=seen),
    "move": lambda world, one, other, seen: world.move(world.groups()[0].rows[0], one, expected=seen),
    "discard": lambda world, one, other, seen: world.discard(one, expected=seen),
    "skip": lambda world, one, other, seen: world.skip(one, expected=seen),
    "learn": lambda world, one, other, seen: world.learn(expected=seen),
    "undo": lambda world, one, other, seen: world.undo(expected=seen),
    "redo": lambda world, one, other, seen: world.redo(expected=seen),
    "rollback": lambda world, one, other, seen: world.rollback(1, expected=seen),
    "teach": lambda world, one, other, seen: world.teach(*blobs([5], 9), expected=seen),
}


@pytest.mark.parametrize("act", ACTS)
def test_an_act_on_what_was_changed_is_refused_and_says_how(world: OpenWorld, act: str) -> None:
    one, other = pair(world)
    seen = world.revision
    world.name(one, 3)
    before = world.state.to_bytes(), world.revision
    with pytest.raises(StaleActError, match=f"group {one} was named 3") as refused:
        ACTS[act](world, one, other, seen)
    assert (world.state.to_bytes(), world.revision) == before
    assert (refused.value.expected, refused.value.revision) == (seen, seen + 1)
    assert refused.value.acts == (f"group {one} was named 3",)
    ACTS["name"](world, one, other, world.revision)


def test_what_the_stream_brings_and_decisions_on_other_groups_make_nothing_stale(world: OpenWorld) -> None:
    one, other = pair(world)
    seen = world.revision
    world.name(other, 3)
    world.observe(blobs([3, 4], 5, seed=8)[0])
    world.groups()
    world.audit(3)
    world.name(one, 4, expected=seen)
    assert world.state.groups[one].name == 4


def test_a_group_that_was_merged_away_or_given_back_is_never_hit(world: OpenWorld) -> None:
    one, other = pair(world)
    seen = world.revision
    world.merge(one, other)
    for group in (one, other):
        with pytest.raises(StaleActError, match=f"group {other} was merged into group {one}"):
            world.name(group, 4, expected=seen)
    seen = world.revision
    world.undo()
    with pytest.raises(StaleActError, match=f"undone: group {other} was merged into group {one}"):
        world.discard(one, expected=seen)
    seen = world.revision
    parts = world.split(other)
    with pytest.raises(StaleActError, match=f"group {other} was split into {parts[0]} and {parts[1]}"):
        world.skip(other, expected=seen)


def test_a_row_is_stale_by_its_own_label_and_by_a_lesson_only(world: OpenWorld) -> None:
    one, other = pair(world)
    rows = next(view.rows for view in world.groups() if view.id == one)
    seen = world.revision
    world.label(rows[0], 3)
    world.skip(other)
    world.label(rows[1], 3, expected=seen)
    with pytest.raises(StaleActError, match=f"row {rows[0]!r} was labelled 3"):
        world.label(rows[0], 4, expected=seen)
    seen = world.revision
    world.name(one, 3)
    world.learn()
    with pytest.raises(StaleActError, match="version 2 was learnt"):
        world.skip(other, expected=seen)


def test_a_revision_of_the_future_is_refused(world: OpenWorld) -> None:
    with pytest.raises(ValueError, match="give one that it has had"):
        world.undo(expected=world.revision + 1)


def test_acts_are_told_in_order_and_say_whether_they_stand(world: OpenWorld) -> None:
    one, other = pair(world)
    start = world.revision
    world.name(one, 3)
    world.merge(one, other)
    world.undo()
    world.discard(other)
    world.rollback(1)
    assert [(act.sentence, act.stands) for act in world.acts(start)] == [
        (f"group {one} was named 3", True),
        (f"group {other} was merged into group {one}", False),
        (f"undone: group {other} was merged into group {one}", False),
        (f"group {other} was discarded", True),
        ("the model was rolled back to version 1", True),
    ]
    assert world.acts()[0].sentence == "version 1 was taught"
    assert [act.number for act in world.acts(start)] == list(range(start + 1, world.revision + 1))
