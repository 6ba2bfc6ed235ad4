"""Known rows and groups that lie near: what a reviewer compares a group with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.loop.spread import distances
from offmap.loop.state import Group, Label
from offmap.loop.world import OpenWorld

# Rows of each known class that are compared; more would only take longer.
_PER_CLASS = 50


@dataclass(frozen=True)
class KnownRow:
    """A row that taught a known class.

    Args:
        row: The row as it was given.
        label: Its class.
        distance: How far it lies, in the units of the spread within known classes.
    """

    row: Any
    label: Label
    distance: float


class KnownRows:
    """Finds the known rows nearest to rows and groups of a world, and the groups nearest to a group.

    What depends on the version of the model alone is computed once per version, and centres once per group.

    Args:
        world: The world.

    Example:
        >>> import tempfile
        >>> from offmap.openset import AnalyticClassifier
        >>> y = np.repeat([0, 1], 30)
        >>> X = np.random.default_rng(0).normal(size=(60, 2)) + 9 * y[:, None]
        >>> classifier = AnalyticClassifier(width=20, calibration=0.5)
        >>> world = OpenWorld.create(f"{tempfile.mkdtemp()}/w", classifier=classifier)
        >>> _ = world.teach(X, y), world.observe([[8.0, 8.0]], ids=["new"])
        >>> [[near]] = KnownRows(world).nearest([world.state.numbers["new"]], count=1)
        >>> near.label, near.row.shape, near.distance < 2
        (1, (2,), True)
        >>> world.close()
    """

    def __init__(self, world: OpenWorld) -> None:
        self._ledger = world._ledger
        self._version: int | None = None
        self._numbers: list[int] = []
        self._rows: NDArray[np.float64] = np.empty((0, 0))
        self._scale: NDArray[np.float64] = np.empty(0)
        self._centres: dict[int, tuple[tuple[int, ...], NDArray[np.float64]]] = {}
        self._moments: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def nearest(self, numbers: Sequence[int], count: int) -> list[list[KnownRow]]:
        """The nearest known rows of each row, the nearest first."""
        return self._near(self._scaled(numbers), count)

    def nearest_to_group(self, group: Group, count: int) -> list[KnownRow]:
        """The known rows nearest to the centre of a group."""
        return self._near(self._centre(group)[None], count)[0]

    def similar(self, group: Group, others: Sequence[Group]) -> list[int]:
        """Ids of the other groups, the one with the nearest centre first."""
        rivals = [other for other in others if other.id != group.id and other.rows]
        if not rivals:
            return []
        centres = np.stack([self._centre(other) for other in rivals])
        away = distances(self._centre(group)[None], centres)[0]
        return [rivals[place].id for place in np.argsort(away, kind="stable")]

    def shift(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far each value of feature rows lies from the known rows, in their standard deviations."""
        self._learn_version()
        if self._moments is None:
            known = self._ledger.memory.rows(self._numbers).astype(np.float64)
            deviation = known.std(axis=0)
            self._moments = known.mean(axis=0), np.where(deviation > 0, deviation, 1)
        mean, deviation = self._moments
        return (rows - mean) / deviation

    def _near(self, vectors: NDArray[np.float64], count: int) -> list[list[KnownRow]]:
        self._learn_version()
        away = distances(vectors, self._rows)
        order = np.argsort(away, axis=1, kind="stable")[:, :count]
        wanted = [self._numbers[place] for place in order.ravel()]
        # A row may be near to several: each is read once.
        unique = list(dict.fromkeys(wanted))
        rows = dict(zip(unique, self._ledger.memory.rows(unique), strict=True))
        return [
            [self._known(self._numbers[place], rows, float(away[line, place])) for place in places]
            for line, places in enumerate(order)
        ]

    def _known(self, number: int, rows: dict[int, Any], distance: float) -> KnownRow:
        return KnownRow(rows[number], self._ledger.state.taught[number], distance)

    def _scaled(self, numbers: Sequence[int]) -> NDArray[np.float64]:
        self._learn_version()
        return np.asarray(self._ledger.memory.vectors(self._ledger.classifier, numbers) / self._scale, np.float64)

    def _centre(self, group: Group) -> NDArray[np.float64]:
        self._learn_version()
        rows = tuple(group.rows)
        if group.id not in self._centres or self._centres[group.id][0] != rows:
            self._centres[group.id] = rows, self._scaled(rows).mean(axis=0)
        return self._centres[group.id][1]

    def _learn_version(self) -> None:
        """Takes the known rows of the version in use, if they are not those of the last call."""
        state = self._ledger.state
        if state.version == self._version and self._numbers:
            return
        by_class: dict[Label, list[int]] = {}
        for number, label in state.taught.items():
            by_class.setdefault(label, []).append(number)
        self._numbers = [number for rows in by_class.values() for number in rows[:_PER_CLASS]]
        self._scale = self._ledger.spread()[0].scale
        self._rows = self._ledger.memory.vectors(self._ledger.classifier, self._numbers) / self._scale
        self._version, self._centres, self._moments = state.version, {}, None
