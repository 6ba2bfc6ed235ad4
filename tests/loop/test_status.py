"""What the status of a world counts, and how it words it."""

from pathlib import Path

import pytest

from offmap.loop import OpenWorld
from offmap.openset import ANSClassifier
from tests.command_line import Run
from tests.loop.worlds import blobs, taught


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


def audited(world: OpenWorld, count: int) -> None:
    """Audits rows of a known class."""
    world.observe(blobs([0], count, seed=7)[0])
    for row in world.audit(count):
        world.label(row.id, 0)


def test_rows_that_were_held_out_and_audit_rows_are_called_so(tmp_path: Path) -> None:
    model = ANSClassifier(steps=5, closed_set_width=20, calibration=0.4, random_state=0)
    with OpenWorld.create(tmp_path / "w", classifier=model, alpha=0.1, min_group=4) as world:
        world.teach(*blobs([0, 1, 2], 30))
        assert world.status().promise.endswith("expected from 36 held-out rows")
        audited(world, 20)
        assert "expected from 36 held-out rows; measured" in world.status().promise
        world.learn()
        assert world.status().promise.endswith("expected from 20 audit rows")


def test_what_was_measured_was_measured_on_audit_rows(run: Run, tmp_path: Path) -> None:
    with taught(tmp_path / "w") as world:
        audited(world, 12)
        status = world.status()
    assert str(status.measured).endswith("] on 12 audit rows of known classes")
    assert status.promise.endswith(f"; measured {status.measured}")
    lines = run("world", "status", tmp_path / "w").out.splitlines()
    assert ["measured", str(status.measured)] in [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines]
    assert status.measured is not None
    assert run("world", "status", tmp_path / "w", "--json").data["measured"] == list(status.measured)


def test_one_audit_row_is_one_row(tmp_path: Path) -> None:
    with taught(tmp_path / "w") as world:
        audited(world, 1)
        assert str(world.status().measured).endswith("] on 1 audit row of a known class")
