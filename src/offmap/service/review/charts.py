"""Charts as data that a template draws: no styles in attributes, which the content security policy forbids."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from offmap.arrays import FloatArray

WIDTH, HEIGHT = 440, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 20, 12, 34


@dataclass(frozen=True)
class Shape:
    """A path, and the class of the style sheet that draws it."""

    style: str
    path: str


@dataclass(frozen=True)
class Tick:
    """A mark of an axis: its place in the drawing and its words."""

    place: float
    label: str


@dataclass(frozen=True)
class Chart:
    """A drawing and what is told of it.

    Args:
        title: What it shows.
        description: The same for those who do not see it, with the numbers that matter.
        shapes: What is drawn, in order.
        x_ticks: Marks of the horizontal axis.
        y_ticks: Marks of the vertical axis.
        x_label: What the horizontal axis counts.
        keys: Style and words of each entry of the legend.
    """

    title: str
    description: str
    shapes: tuple[Shape, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    x_label: str
    keys: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Frame:
    """The ranges of both axes, and what turns values into places of the drawing."""

    x: tuple[float, float]
    y: tuple[float, float]

    def line(self, x: FloatArray, y: FloatArray) -> str:
        """The path through points.

        Example:
            >>> Frame((0, 1), (0, 1)).line(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
            'M44.0 186.0L420.0 12.0'
        """
        points = [f"{across:.1f} {down:.1f}" for across, down in zip(self._across(x), self._down(y), strict=True)]
        return "M" + "L".join(points) if points else ""

    def bars(self, edges: FloatArray, heights: FloatArray) -> str:
        """The path around bars that stand beside each other."""
        bottom = self._down(np.array([self.y[0]]))[0]
        places = zip(self._across(edges[:-1]), self._across(edges[1:]), self._down(heights), strict=True)
        return "".join(
            f"M{left + 0.5:.1f} {bottom:.1f}V{top:.1f}H{right - 0.5:.1f}V{bottom:.1f}Z" for left, right, top in places
        )

    def level(self, y: float) -> str:
        """The path of a line across."""
        return self.line(np.array(self.x), np.array([y, y]))

    def upright(self, x: float) -> str:
        """The path of a line from the bottom to the top."""
        return self.line(np.array([x, x]), np.array(self.y))

    def x_ticks(self, values: Sequence[float], labels: Sequence[str]) -> tuple[Tick, ...]:
        """Marks of the horizontal axis."""
        return tuple(map(Tick, np.round(self._across(np.array(values)), 1).tolist(), labels))

    def y_ticks(self, values: Sequence[float], labels: Sequence[str]) -> tuple[Tick, ...]:
        """Marks of the vertical axis."""
        return tuple(map(Tick, np.round(self._down(np.array(values)), 1).tolist(), labels))

    def _across(self, x: FloatArray) -> FloatArray:
        low, high = self.x
        return _LEFT + (x - low) / ((high - low) or 1.0) * (WIDTH - _LEFT - _RIGHT)

    def _down(self, y: FloatArray) -> FloatArray:
        low, high = self.y
        share = np.clip((y - low) / ((high - low) or 1.0), 0, 1)
        return HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)
