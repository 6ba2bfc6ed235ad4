"""What pages are put together from, against plain loops."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offmap.loop import OpenWorld
from offmap.loop.timeline import Stream
from offmap.service.review import charts, dashboard
from offmap.service.review.cards import deck
from offmap.service.review.desk import Desk
from offmap.service.review.group_page import ROWS, group_content
from offmap.service.review.row_map import HEIGHT, WIDTH, row_map
from tests.loop.worlds import blobs, classifier, taught


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with taught(tmp_path / "w") as world:
        world.observe(blobs([3, 4], 40, seed=1)[0])
        world.groups()
        yield Desk(world)


@given(st.lists(st.booleans(), min_size=1, max_size=2000))
def test_rates_are_those_of_each_block(novel: list[bool]) -> None:
    nothing = np.zeros(len(novel))
    seen = Stream(nothing.astype(int), np.array(novel), nothing, nothing, nothing.astype(int))
    middles, rates = dashboard.block_rates(seen)
    size = max(20, -(-len(novel) // 40))
    blocks = [novel[start : start + size] for start in range(0, len(novel), size)]
    np.testing.assert_allclose(rates, [sum(block) / len(block) for block in blocks])
    np.testing.assert_allclose(middles, [start * size + len(block) / 2 for start, block in enumerate(blocks)])


def test_bars_stand_where_their_values_say() -> None:
    frame = charts.Frame((0, 2), (0, 10))
    path = frame.bars(np.array([0.0, 1.0, 2.0]), np.array([10.0, 5.0]))
    lefts, tops = re.findall(r"M([\d.]+) ", path), re.findall(r"V([\d.]+)H", path)
    [zero, one, two] = [tick.place for tick in frame.x_ticks([0, 1, 2], ["", "", ""])]
    [half, full] = [tick.place for tick in frame.y_ticks([5, 10], ["", ""])]
    np.testing.assert_allclose(np.array(lefts, float), [zero + 0.5, one + 0.5])
    np.testing.assert_allclose(np.array(tops, float), [full, half])
    assert zero < one < two


def test_the_map_has_one_dot_per_row(desk: Desk) -> None:
    drawn = row_map(desk)
    assert drawn is not None
    state = desk.world.state
    assert {region.group.id: region.dots.count("M") for region in drawn.regions} == {
        group.id: len(group.rows) for group in state.groups.values()
    }
    assert drawn.known.count("M") == len(state.taught)
    assert drawn.alone.count("M") == len(state.ungrouped())
    places = np.array(re.findall(r"M([\d.]+) ([\d.]+)h0", drawn.known), float)
    assert ((places >= 0) & (places <= [WIDTH, HEIGHT])).all()


def test_pages_of_rows_together_hold_every_row_once_from_the_centre_to_the_edge(desk: Desk) -> None:
    view = desk.groups("open", "skipped")[0]
    shown = []
    for page in range(1, -(-view.size // ROWS) + 1):
        shown += [card.row.id for card in group_content(desk, view.id, "open", page)["deck"].cards]
    assert tuple(shown) == view.rows
    assert group_content(desk, view.id, "open", 99)["rows_page"] == -(-view.size // ROWS)


def test_names_fit_the_classes_of_the_world(desk: Desk) -> None:
    view = desk.groups("open", "skipped")[0]
    offered = group_content(desk, view.id, "open", 1)["suggestions"]
    assert all(isinstance(label, int) for label in offered)
    assert 3 in offered
    [other] = [found.id for found in desk.groups("open", "skipped") if found.id != view.id]
    desk.world.name(other, 8)
    assert {8, 9} <= set(group_content(desk, view.id, "open", 1)["suggestions"])


def test_far_values_are_marked_in_the_direction_in_which_they_lie(desk: Desk) -> None:
    numbers = list(desk.world.state.rows)[:10]
    for card in deck(desk, numbers).cards:
        values = desk.world.rows([card.row.id])[0]
        shift = desk.known.shift(values[None])[0]
        assert [cell.shift for cell in card.content.cells] == [
            "▲" if far >= 2 else "▼" if far <= -2 else "" for far in shift
        ]
    assert set(numbers) <= desk.shown


def test_what_was_seen_is_kept_until_the_world_changes(desk: Desk) -> None:
    before = desk.groups("open", "skipped")
    assert desk.groups("open", "skipped") is before
    desk.world.skip(before[0].id)
    after = desk.groups("open", "skipped")
    assert [view.id for view in after] == [view.id for view in (*before[1:], before[0])]


def test_drift_goes_on_where_it_was(desk: Desk) -> None:
    first = desk.drift()
    assert first is not None
    desk.world.observe(blobs([0, 1], 15, seed=7)[0])
    again, fresh = desk.drift(), Desk(desk.world).drift()
    assert again is not None
    assert fresh is not None
    assert again.drift.rows == fresh.drift.rows == len(desk.world.state.rows)
    np.testing.assert_allclose(again.path_, fresh.path_)


def test_a_world_without_classes_has_pages_too(tmp_path: Path) -> None:
    with OpenWorld.create(tmp_path / "empty", classifier=classifier()) as world:
        desk = Desk(world)
        assert row_map(desk) is None
        assert desk.drift() is None
        assert group_content(desk, None, "open", 1)["group"] is None


def test_pixels_of_images_are_no_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    known, new = 0.1 * rng.random((60, 4, 4)), 0.1 * rng.random((20, 4, 4)) + 0.9
    known[30:] += 0.3
    with OpenWorld.create(tmp_path / "pictures", classifier=classifier(), min_group=4) as world:
        world.teach(known, np.repeat(["cat", "dog"], 30))
        world.observe(new)
        world.groups()
        shown = group_content(desk := Desk(world), None, "open", 1)
        assert shown["group"].telling
        assert shown["suggestions"]
        assert set(shown["suggestions"]) <= set(desk.labels())
