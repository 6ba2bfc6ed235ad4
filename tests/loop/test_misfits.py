"""Rows of a named group that fit another class better are not learnt with it."""

from pathlib import Path

from tests.loop.worlds import blobs, taught


def test_a_row_of_a_known_class_in_a_named_group_is_left_out_unless_it_was_labelled(tmp_path: Path) -> None:
    with taught(tmp_path / "w") as world:
        world.observe(blobs([3], 30, seed=1)[0], ids=range(30))
        world.observe(blobs([0], 3, seed=2)[0], ids=["stray", "other stray", "labelled"])
        group = max(world.groups(), key=lambda group: group.size)
        for row in ("stray", "other stray", "labelled"):
            world.move(row, group.id)
        world.label("labelled", 3)
        world.name(group.id, 3)
        world.learn()
        numbers, state = world.state.numbers, world.state
        assert state.taught[numbers["labelled"]] == 3
        for row in ("stray", "other stray"):
            assert numbers[row] not in state.taught
            assert state.rows[numbers[row]].group is None
        learnt = [row for row in group.rows if numbers[row] in state.taught]
        assert len(learnt) > 0.9 * group.size
        before = state.to_bytes()
        world.undo()
        assert numbers["stray"] in world.state.groups[group.id].rows
        world.redo()
        assert world.state.to_bytes() == before
