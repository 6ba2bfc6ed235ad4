"""Rows of a named group are learnt as the class of rows around them, and move to a class that is named later."""

from pathlib import Path

import numpy as np

from tests.loop.worlds import blobs, taught


def test_a_row_of_a_known_class_in_a_named_group_is_learnt_as_that_class_unless_it_was_labelled(tmp_path: Path) -> None:
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
        assert {state.taught[numbers[row]] for row in ("stray", "other stray")} == {0}
        learnt = [row for row in group.rows if state.taught.get(numbers[row]) == 3]
        assert len(learnt) > 0.9 * group.size
        before = state.to_bytes()
        world.undo()
        assert numbers["stray"] in world.state.groups[group.id].rows
        assert numbers["stray"] not in world.state.taught
        world.redo()
        assert world.state.to_bytes() == before


def test_rows_learnt_as_one_class_move_to_another_that_is_named_later(tmp_path: Path) -> None:
    with taught(tmp_path / "w") as world:
        world.observe(blobs([3], 30, seed=1)[0], ids=range(30))
        world.observe(blobs([4], 4, seed=2)[0], ids=[f"early {row}" for row in range(4)])
        group = max(world.groups(), key=lambda group: group.size)
        for row in range(4):
            world.move(f"early {row}", group.id)
        world.name(group.id, 3)
        world.learn()
        early = [world.state.numbers[f"early {row}"] for row in range(4)]
        assert {world.state.taught[number] for number in early} == {3}
        world.observe(blobs([4], 30, seed=3)[0], ids=[f"late {row}" for row in range(30)])
        late = max(world.groups(), key=lambda group: sum(str(row).startswith("late") for row in group.rows))
        world.name(late.id, 4)
        before = world.state.to_bytes()
        world.learn()
        assert {world.state.taught[number] for number in early} == {4}
        # The model is that of the classes as they are now: no trace of the earlier ones is left.
        model = world.classifier
        held = [
            model.row_labels_[place] for place in _places(model.rows_, world.rows([f"early {r}" for r in range(4)]))
        ]
        assert held == [4, 4, 4, 4]
        world.undo()
        assert world.state.to_bytes() == before


def _places(rows: np.ndarray, wanted: np.ndarray) -> list[int]:
    return [int(place) for row in wanted for place in np.flatnonzero((rows == row.astype(np.float32)).all(axis=1))]
