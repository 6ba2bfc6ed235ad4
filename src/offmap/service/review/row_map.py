"""The map: every waiting row as a dot in the plane, coloured by its group, each group a link."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offmap.loop.state import Group
from offmap.service.review.desk import Desk

WIDTH, HEIGHT, _EDGE = 800, 520, 14
HUES = 8
"""Colours of groups; they are used again, and numbers tell groups apart."""
_MOST_WAITING, _MOST_KNOWN, _MOST_LABELS = 6000, 1500, 30


@dataclass(frozen=True)
class Region:
    """The dots of one group.

    Args:
        group: The group.
        hue: Its colour, from 0 to ``HUES`` - 1.
        dots: A path that draws all its dots.
        x: Where its number stands.
        y: Where its number stands.
        labelled: Whether its number is written: only the largest are.
    """

    group: Group
    hue: int
    dots: str
    x: float
    y: float
    labelled: bool


@dataclass(frozen=True)
class RowMap:
    """Dots of known rows, of rows without a group, and of each group; ``left_out`` counts the dots not drawn."""

    known: str
    alone: str
    regions: list[Region]
    left_out: int


def row_map(desk: Desk) -> RowMap | None:
    """Places waiting rows, rows of named groups, and some known rows; None while there is nothing to see."""
    state = desk.world.state
    if state.version is None or not state.rows:
        return None
    groups = [group for group in state.groups.values() if group.status in ("open", "skipped", "named") and group.rows]
    known = _spread(list(state.taught), _MOST_KNOWN)
    every = len(alone := state.ungrouped()) + sum(len(group.rows) for group in groups)
    share = min(1.0, _MOST_WAITING / max(every, 1))
    members = [_spread(group.rows, max(3, round(share * len(group.rows)))) for group in groups]
    alone = _spread(alone, round(share * len(alone)))
    parts = [known, alone, *members]
    places = _fitted(desk.plane.places([number for part in parts for number in part]))
    cuts = np.split(places, np.cumsum([len(part) for part in parts])[:-1])
    large = sorted((len(group.rows) for group in groups), reverse=True)[:_MOST_LABELS]
    least = large[-1] if large else 0
    regions = [_region(group, dots, least) for group, dots in zip(groups, cuts[2:], strict=True)]
    left_out = every - sum(map(len, parts[1:]))
    return RowMap(_dots(cuts[0]), _dots(cuts[1]), regions, left_out)


def _region(group: Group, places: NDArray[np.float64], least: int) -> Region:
    x, y = np.median(places, axis=0)
    return Region(
        group, group.id % HUES, _dots(places), round(float(x), 1), round(float(y), 1), len(group.rows) >= least
    )


def _spread(numbers: list[int], most: int) -> list[int]:
    """At most so many of the numbers, evenly chosen."""
    if len(numbers) <= most:
        return list(numbers)
    return [numbers[place] for place in np.linspace(0, len(numbers) - 1, most).astype(int)]


def _fitted(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coordinates of the drawing; the few dots furthest out are drawn at its edge."""
    low, high = np.quantile(places, [0.005, 0.995], axis=0)
    share = np.clip((places - low) / np.where(high > low, high - low, 1), 0, 1)
    share[:, 1] = 1 - share[:, 1]
    return _EDGE + share * (np.array([WIDTH, HEIGHT]) - 2 * _EDGE)


def _dots(places: NDArray[np.float64]) -> str:
    """A path of dots: lines without a length, which round ends turn into dots."""
    return "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places)
