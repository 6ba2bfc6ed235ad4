"""Known rows and groups that lie near, rows in the plane, and the timeline, against plain loops."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from offmap.loop import OpenWorld
from offmap.loop.known_rows import KnownRows
from offmap.loop.plane import Plane
from offmap.loop.timeline import decisions, stream
from tests.loop.worlds import blobs, taught


@pytest.fixture
def world(tmp_path: Path) -> Iterator[OpenWorld]:
    with taught(tmp_path / "w") as made:
        yield made


def numbers_of(world: OpenWorld, count: int) -> list[int]:
    return list(world.state.rows)[:count]


def test_the_nearest_known_rows_are_those_of_a_plain_search(world: OpenWorld) -> None:
    X, _ = blobs([3, 4], 12, seed=1)
    world.observe(X)
    rows = world._ledger.memory.rows(list(world.state.taught))
    scale = world._ledger.spread()[0].scale
    for row, found in zip(X, KnownRows(world).nearest(numbers_of(world, 24), count=3), strict=True):
        away = np.sqrt((((rows - row) / scale) ** 2).sum(axis=1))
        order = np.argsort(away)[:3]
        np.testing.assert_allclose([near.distance for near in found], away[order], rtol=1e-4)
        labels = list(world.state.taught.values())
        assert [near.label for near in found] == [labels[place] for place in order]
        np.testing.assert_array_equal([near.row for near in found], rows[order])


def test_a_new_version_brings_its_own_known_rows(world: OpenWorld) -> None:
    world.observe(blobs([3], 20, seed=1)[0])
    known = KnownRows(world)
    [group] = world.groups()
    assert known.nearest_to_group(world.state.groups[group.id], 1)[0].label in (0, 1, 2)
    world.name(group.id, 3)
    world.learn()
    world.observe(blobs([3], 1, seed=2)[0], ids=["later"])
    [[near]] = known.nearest([world.state.numbers["later"]], count=1)
    assert near.label == 3


def test_similar_groups_come_in_the_order_of_their_centres(world: OpenWorld) -> None:
    world.observe(blobs([3, 4, 5], 20, seed=1)[0])
    world.groups()
    groups, known = list(world.state.groups.values()), KnownRows(world)
    vectors = {group.id: world._ledger.memory.vectors(world.classifier, group.rows) for group in groups}
    scale = world._ledger.spread()[0].scale
    centres = {group: (rows / scale).mean(axis=0) for group, rows in vectors.items()}
    for group in groups:
        others = [other.id for other in groups if other.id != group.id]
        others.sort(key=lambda other: float(np.linalg.norm(centres[other] - centres[group.id])))
        assert known.similar(group, groups) == others
    # A centre that was computed once follows its group.
    first, second = groups[0].id, groups[1].id
    world.merge(first, second)
    assert second not in known.similar(world.state.groups[first], list(world.state.groups.values()))


def test_values_are_compared_with_the_known_rows(world: OpenWorld) -> None:
    rows = world._ledger.memory.rows(list(world.state.taught))
    shift = KnownRows(world).shift(np.array([[1.0, 100.0]]))
    np.testing.assert_allclose(shift[0], (np.array([1.0, 100.0]) - rows.mean(axis=0)) / rows.std(axis=0))


def test_the_plane_keeps_distances_of_rows_that_are_in_one_and_places_while_the_version_stays(world: OpenWorld) -> None:
    X, _ = blobs([3, 4], 12, seed=1)
    world.observe(X)
    plane, numbers = Plane(world), numbers_of(world, 24)
    places = plane.places(numbers)
    np.testing.assert_allclose(pdist(places), pdist(X), rtol=1e-3)
    world.observe(blobs([5], 12, seed=3)[0])
    np.testing.assert_array_equal(plane.places(list(world.state.rows))[:24], places)


def test_as_many_steps_as_a_decision_says_take_it_back_and_bring_it_back(world: OpenWorld) -> None:
    world.observe(blobs([3, 4], 20, seed=1)[0])
    first, second = [group.id for group in world.groups()]
    world.name(first, 3)
    world.skip(second)
    world.discard(second)
    named = next(decision for decision in decisions(world) if decision.kind == "named")
    assert (named.stands, named.undo_steps, named.at > "2020") == (True, 3, True)
    for _ in range(named.undo_steps):
        world.undo()
    named = next(decision for decision in decisions(world) if decision.kind == "named")
    assert (named.stands, named.redo_steps, world.state.groups[first].status) == (False, 1, "open")
    for _ in range(named.redo_steps):
        world.redo()
    assert world.state.groups[first].name == 3
    world.skip(first)
    discarded = next(decision for decision in decisions(world) if decision.kind == "discarded")
    assert (discarded.stands, discarded.redo_steps) == (False, 0)
    assert [decision.kind for decision in decisions(world, limit=2)] == ["skipped", "discarded"]


def test_the_stream_is_what_was_said_when_the_rows_came(world: OpenWorld) -> None:
    verdict = world.observe(blobs([0, 3], 15, seed=1)[0])
    for group in world.groups():
        world.name(group.id, 3)
    world.learn()
    later = world.observe(blobs([0, 3], 5, seed=2)[0])
    seen = stream(world)
    np.testing.assert_array_equal(seen.novel, np.concatenate([verdict.novel, later.novel]))
    np.testing.assert_allclose(seen.novelty, np.concatenate([verdict.novelty, later.novelty]))
    np.testing.assert_array_equal(seen.version, [1] * 30 + [2] * 10)
    assert later.p_value is not None
    np.testing.assert_allclose(seen.of_version(2).p_value, later.p_value)
