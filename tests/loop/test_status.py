"""What the status of a world counts, and how it words it."""

import pytest

from offmap.loop import OpenWorld


@pytest.mark.parametrize("decide", ["name", "skip", "discard", "nothing"])
def test_a_group_whose_rows_were_all_moved_out_is_not_counted(world: OpenWorld, decide: str) -> None:
    one, other = world.groups()
    if decide == "name":
        world.name(one.id, 3)
    elif decide != "nothing":
        getattr(world, decide)(one.id)
    world.name(other.id, 4)
    for row in one.rows:
        world.move(row, other.id)
    assert world.status().groups == {"named": 1}
    assert [view.id for view in world.groups("open", "skipped", "named", "discarded")] == [other.id]
    world.undo()
    assert sum(world.status().groups.values()) == 2


def test_groups_that_were_merged_or_split_are_counted_as_such(world: OpenWorld) -> None:
    one, other = (view.id for view in world.groups())
    world.name(one, 3)
    world.merge(one, other)
    assert world.status().groups == {"named": 1, "merged": 1}
    world.split(one)
    assert world.status().groups == {"split": 1, "merged": 1, "open": 2}
