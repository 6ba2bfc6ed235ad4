"""What a reviewer and a stream do to a world, and what it refuses."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from offmap.loop import OpenWorld
from offmap.openset import ANSClassifier, MSPClassifier
from offmap.store import JournalInUse, JournalUnreadable
from tests.loop.worlds import blobs, classifier, fingerprint, taught


def largest(world: OpenWorld) -> int:
    return max(world.groups(), key=lambda group: group.size).id


def test_unknown_blobs_become_groups_that_are_named_and_learnt(world: OpenWorld) -> None:
    rows, truth = blobs([0, 3, 4], 15, seed=1)
    ids = {row.id: place for place, row in enumerate(world.state.rows.values())}
    groups = world.groups()
    assert len(groups) == 2
    for group in groups:
        classes = {int(truth[ids[identity]]) for identity in group.rows}
        assert len(classes) == 1
        world.name(group.id, classes.pop())
    assert world.learn() == 2
    fresh, expected = blobs([0, 1, 2, 3, 4], 20, seed=9)
    assert np.mean(world.classifier.predict_closed(fresh) == expected) > 0.97
    assert world.status().groups == {"learnt": 2}
    assert [row.group for row in world.state.rows.values()].count(None) >= 14
    assert len(rows) == len(world.state.rows)


def test_groups_keep_their_ids_and_rows_when_more_rows_come(world: OpenWorld) -> None:
    before = {group.id: set(group.rows) for group in world.groups()}
    world.name(largest(world), 3)
    world.observe(blobs([3, 4, 5], 10, seed=5)[0])
    after = {group.id: set(group.rows) for group in world.groups("open", "named")}
    assert all(rows <= after[identity] for identity, rows in before.items())
    assert len(after) == len(before) + 1
    assert sum(len(rows) for rows in after.values()) > sum(len(rows) for rows in before.values()) + 20


def test_a_decision_changes_no_other_group(world: OpenWorld) -> None:
    one, other = (group.id for group in world.groups())
    before = world.state.groups[other].rows.copy(), world.state.groups[other].status
    world.name(one, 3)
    world.skip(one)
    world.split(one)
    assert (world.state.groups[other].rows, world.state.groups[other].status) == before


def test_merge_split_move_skip_and_discard(world: OpenWorld) -> None:
    one, other = (group.id for group in world.groups())
    sizes = [len(world.state.groups[group].rows) for group in (one, other)]
    world.merge(one, other)
    assert len(world.state.groups[one].rows) == sum(sizes)
    parts = world.split(one)
    assert sorted(len(world.state.groups[part].rows) for part in parts) == sorted(sizes)
    row = next(view for view in world.groups() if view.id == parts[0]).rows[-1]
    world.move(row, parts[1])
    assert row in next(view for view in world.groups() if view.id == parts[1]).rows
    world.skip(parts[1])
    assert [view.id for view in world.groups()] == list(parts)
    world.discard(parts[1])
    assert [view.id for view in world.groups()] == [parts[0]]
    assert [view.id for view in world.groups("discarded")] == [parts[1]]
    world.name(parts[1], 4)
    assert world.state.groups[parts[1]].status == "named"


def test_rows_are_listed_from_the_centre_to_the_edge(world: OpenWorld) -> None:
    view = world.groups()[0]
    rows = world.rows(view.rows)
    # The scale of the two features is nearly the same, so plain distances give nearly the same order.
    away = np.linalg.norm(rows - rows.mean(axis=0), axis=1)
    assert np.corrcoef(away, np.arange(len(away)))[0, 1] > 0.9
    assert 0 < view.sure <= 1
    assert len(view.telling) == 2


def test_rows_of_a_known_class_that_was_rejected_are_suggested_to_join_it(tmp_path: Path) -> None:
    with taught(tmp_path / "w") as world:
        world.observe(blobs([0], 20, seed=1)[0] * 0.3 + [2.2, -2.2])
        view = world.groups()[0]
        assert (view.nearest_class, view.joins_class, view.suggestions[0]) == (0, True, 0)
        world.name(view.id, 0)
        world.learn()
        assert world.status().classes == 3


def test_a_row_observed_again_has_no_effect_and_another_one_under_its_id_is_refused(world: OpenWorld) -> None:
    rows, _ = blobs([3], 2, seed=7)
    world.observe(rows, ids=["a", "b"])
    before = world.state.to_bytes()
    assert len(world.observe(rows, ids=["a", "b"])) == 2
    assert world.state.to_bytes() == before
    # The same numbers of another type are the same row to the model.
    assert len(world.observe(rows.astype(np.float32), ids=["a", "b"])) == 2
    assert world.state.to_bytes() == before
    with pytest.raises(ValueError, match="'b', which is the id of another row"):
        world.observe(rows, ids=["b", "c"])
    with pytest.raises(ValueError, match="'x', which is the id of another row"):
        world.observe(rows, ids=["x", "x"])
    assert world.state.to_bytes() == before


def test_rows_without_an_id_get_numbers_that_no_row_has(world: OpenWorld) -> None:
    rows, _ = blobs([3], 4, seed=7)
    world.observe(rows[:2], ids=[5000, 5001])
    world.observe(rows[2:])
    world.observe(rows[:2] + 1, ids=[5004, 5005])
    assert {5000, 5001, 5002, 5003, 5004, 5005} <= set(world.state.numbers)


def test_an_unknown_label_with_spaces_around_it_is_refused(tmp_path: Path) -> None:
    X, y = blobs([0, 1, 2], 30)
    with OpenWorld.create(tmp_path / "w", classifier=classifier(), min_group=4) as world:
        world.teach(X, np.array(["a", "b", "c"])[y])
        world.observe(blobs([3], 15, seed=1)[0])
        with pytest.raises(ValueError, match="label 'unknown' is what unknown rows are called"):
            world.name(world.groups()[0].id, " unknown ")


def test_groups_with_different_names_and_discarded_ones_are_not_merged_by_accident(world: OpenWorld) -> None:
    one, other = (group.id for group in world.groups())
    world.name(one, 3)
    world.name(other, 4)
    with pytest.raises(ValueError, match=f"group {one} is named 3 and group {other} 4; give both the same name first"):
        world.merge(one, other)
    world.discard(one)
    with pytest.raises(ValueError, match=f"group {one} was discarded; name or skip it first, or merge it into group"):
        world.merge(one, other)
    world.skip(other)
    assert (world.state.groups[other].status, world.state.groups[other].name) == ("skipped", None)


def test_audit_rows_that_only_set_the_threshold_are_not_said_to_be_too_few_to_learn(tmp_path: Path) -> None:
    model = ANSClassifier(steps=5, closed_set_width=20, calibration=0.4, random_state=0)
    with OpenWorld.create(tmp_path / "w", classifier=model, alpha=0.1, min_group=4) as world:
        world.teach(*blobs([0, 1, 2], 30))
        world.observe(blobs([0, 1, 2], 15, seed=1)[0])
        for row in world.audit(30):
            world.label(row.id, 0)
        world.learn()
        with pytest.raises(ValueError, match="nothing to learn: name a group or label rows first"):
            world.learn()


def test_closed_groups_say_what_became_of_them(world: OpenWorld) -> None:
    one, other = (group.id for group in world.groups())
    world.merge(one, other)
    with pytest.raises(ValueError, match=f"group {other} was merged; its rows are in group {one}"):
        world.name(other, 3)
    world.name(one, 3)
    world.learn()
    with pytest.raises(ValueError, match="was learnt in version 2"):
        world.discard(one)
    learnt = next(iter(world.state.rows[number].id for number in world.state.taught if number in world.state.rows))
    with pytest.raises(ValueError, match="was learnt already"):
        world.label(learnt, 4)


def test_a_full_disk_changes_nothing(world: OpenWorld) -> None:
    before = world.state.to_bytes()
    database = world._ledger.journal._database  # type: ignore[attr-defined]
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(OSError, match="full"):
        world.observe(blobs([3], 500, seed=3)[0])
    assert world.state.to_bytes() == before
    database.execute("PRAGMA max_page_count = 100000")
    world.name(largest(world), 3)


def test_a_model_that_cannot_be_written_changes_nothing(world: OpenWorld) -> None:
    world.name(largest(world), 3)
    before, limits = world.state.to_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"version 2 of the model cannot be written to .*; nothing was changed"):
            world.learn()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert world.state.to_bytes() == before
    assert world.learn() == 2


def test_folders_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no world"):
        OpenWorld.open(tmp_path)
    with pytest.raises(ValueError, match="AnalyticClassifier"):
        OpenWorld.create(tmp_path / "w", classifier=MSPClassifier())
    world = OpenWorld.create(tmp_path / "w", classifier=classifier())
    with pytest.raises(ValueError, match="teach some first"):
        world.observe([[0.0, 0.0]])
    with pytest.raises(JournalInUse, match="in use by another process"):
        OpenWorld.open(tmp_path / "w")
    world.close()
    with pytest.raises(FileExistsError, match="holds a world already"):
        OpenWorld.create(tmp_path / "w", classifier=classifier())
    database = sqlite3.connect(tmp_path / "w" / "journal.sqlite")
    database.execute("PRAGMA user_version = 2")
    database.close()
    with pytest.raises(JournalUnreadable, match="newer release"):
        OpenWorld.open(tmp_path / "w")


def test_a_model_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    taught(tmp_path / "w").close()
    path = tmp_path / "w" / "models" / "0001.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with OpenWorld.open(tmp_path / "w") as world, pytest.raises(ValueError, match="not the file that was written"):
        world.observe([[0.0, 0.0]])


def test_rollback_returns_to_the_model_and_its_groups_wait_again(world: OpenWorld) -> None:
    first = world.classifier.novelty(CORNERS)
    group = largest(world)
    world.name(group, 3)
    world.learn()
    assert world.classifier.novelty(CORNERS).tobytes() != first.tobytes()
    world.rollback(1)
    assert world.classifier.novelty(CORNERS).tobytes() == first.tobytes()
    assert (world.state.groups[group].status, world.state.groups[group].name) == ("named", 3)
    assert world.learn() == 3
    assert 3 in world.classifier.classes_


def test_after_a_rollback_rows_can_be_audited_and_rows_that_wait_again_are_grouped(tmp_path: Path) -> None:
    with taught(tmp_path / "w") as world:
        world.observe(blobs([3], 15, seed=1)[0])
        world.name(world.groups()[0].id, 3)
        world.learn()
        world.observe(blobs([3], 15, seed=2)[0])
        world.groups()
        world.rollback(1)
        world.groups()
        assert len(world.state.ungrouped()) < 5
        assert len(world.audit(20)) == 20


def test_rollback_to_a_version_that_was_left_before_knows_what_it_knew(world: OpenWorld) -> None:
    one, other = (group.id for group in world.groups())
    world.name(one, 3)
    world.learn()
    taught = dict(world.state.taught)
    world.rollback(1)
    world.name(other, 4)
    assert world.learn() == 3
    assert {3, 4} <= set(world.state.taught.values())
    world.rollback(2)
    assert world.state.taught == taught
    assert world.state.groups[one].status == "learnt"
    assert (world.state.groups[other].status, world.state.groups[other].name) == ("named", 4)
    assert world.learn() == 4
    assert world.classifier.classes_.tolist() == [0, 1, 2, 3, 4]


CORNERS = np.array([[9.0, 9.0], [0.0, 0.0], [-9.0, 0.0]])

SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.loop.worlds import blobs, fingerprint, taught
world = taught(Path(sys.argv[1]))
def said(): print(fingerprint(world), flush=True)
said()
for step in range(8):
    world.observe(blobs([0, 3, 4, 5], 6, seed=step)[0]); said()
    groups = world.groups(); said()
    if groups:
        world.name(groups[0].id, 3 + step % 3); said()
        world.learn(); said()
    if step % 3 == 2:
        world.undo(); said()
"""


def run_script(folder: Path, acts: int | None) -> list[str]:
    """Digests of the state after each act that was acknowledged, up to a kill after ``acts`` of them."""
    command = [sys.executable, "-c", SCRIPT, str(folder), str(Path(__file__).parents[2])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as stream:
        found = [stream.readline().strip() for _ in range(acts)] if acts is not None else []
        if acts is not None:
            os.kill(process.pid, signal.SIGKILL)
        found += stream.read().split()
    process.wait()
    return [digest for digest in found if len(digest) == 64]


def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    whole = run_script(tmp_path / "whole", None)
    assert len(whole) > 25
    for acts in (2, 5, 11):
        seen = run_script(tmp_path / f"killed-{acts}", acts)
        assert seen == whole[: len(seen)]
        with OpenWorld.open(tmp_path / f"killed-{acts}") as world:
            assert fingerprint(world) in whole[len(seen) - 1 : len(seen) + 1]
            world.observe(blobs([5], 6, seed=77)[0], ids=[f"late {row}" for row in range(6)])
