"""Histograms of novelty on an axis that heavy tails and infinities cannot stretch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from offmap.report.markup import Markup, number, percent
from offmap.report.model import FloatArray, Section
from offmap.report.svg import INK, NORMAL, NOVEL, Key, blank_axes, figure_element, inline_svg

TAIL = 0.005
"""Share of each group that may lie beyond either end of a cut axis."""
LIGHT_TAIL = 0.25
"""A tail that reaches no further beyond its quantile, in units of the range between the quantiles, is not cut."""
STRETCHED = 20.0
"""An axis this many times as wide as the central half of the first group hides that group's shape."""
FEW = 0.05
"""Share of the first group that may be too small for a log scale."""
RESOLUTION = 1e-12
"""Differences this small beside the numbers themselves are rounding, not shape."""
SMALLEST = float(np.finfo(np.float64).tiny)
COLOURS = (NORMAL, NOVEL)


@dataclass(frozen=True)
class View:
    """The part of the novelty axis that is drawn."""

    low: float
    high: float
    log: bool = False

    def edges(self, bins: int) -> FloatArray:
        """Edges of ``bins`` bars that look equally wide."""
        space = np.geomspace if self.log else np.linspace
        return np.asarray(space(self.low, self.high, bins + 1), dtype=np.float64)

    def beyond(self, novelty: FloatArray) -> int:
        """How many rows lie outside."""
        return int(((novelty < self.low) | (novelty > self.high)).sum())


def view_of(groups: Sequence[FloatArray], threshold: float) -> View:
    """Chooses the axis for some groups of scores, the first being the one to compare with.

    Heavy tails are cut at robust quantiles. If the first group would still be squeezed into a corner, the axis is
    logarithmic or, where scores are not positive, cut around that group.

    Example:
        >>> view_of([np.linspace(1, 2, 100), np.linspace(100, 2000, 100)], threshold=2.0).log
        True
    """
    finite = [novelty[np.isfinite(novelty)] for novelty in groups if np.isfinite(novelty).any()]
    marks = [threshold] if np.isfinite(threshold) else []
    view = _spanning([*marks, *(end for novelty in finite for end in _bulk(novelty))] or [0.0])
    return _unsqueezed(view, finite, marks) if finite else view


def _bulk(novelty: FloatArray) -> tuple[float, float]:
    """The ends of a group of scores, or its quantiles where a tail reaches far beyond them."""
    low, high = np.quantile(novelty, [TAIL, 1 - TAIL])
    reach = LIGHT_TAIL * (high - low)
    least, greatest = novelty.min(), novelty.max()
    return least if low - least <= reach else low, greatest if greatest - high <= reach else high


def _unsqueezed(view: View, finite: Sequence[FloatArray], marks: Sequence[float]) -> View:
    lower, first_quarter, last_quarter, upper = np.quantile(finite[0], [0.05, 0.25, 0.75, 0.95])
    span = view.high - view.low
    if span <= STRETCHED * (last_quarter - first_quarter) or upper - lower <= RESOLUTION * span:
        return view
    room = STRETCHED / 2 * (upper - lower)
    cut = _spanning([max(view.low, lower - room), min(view.high, upper + room), *marks])
    return _logarithmic(view, finite, marks) or cut


def _logarithmic(view: View, finite: Sequence[FloatArray], marks: Sequence[float]) -> View | None:
    """The axis on a log scale, if scores are not negative, few of the first group are zero, and it spans a decade."""
    positive = np.concatenate(finite)
    positive = positive[positive > 0]
    if view.low < 0 or len(positive) == 0:
        return None
    low = min([view.low or float(np.quantile(positive, TAIL)), *marks])
    spans_a_decade = low > 0 and view.high >= 10 * low
    return View(low, view.high, log=True) if spans_a_decade and np.mean(finite[0] < low) <= FEW else None


def _spanning(values: Sequence[float]) -> View:
    """The axis from the least value to the greatest, with room around them if they are the same up to rounding."""
    low, high = float(min(values)), float(max(values))
    size = max(abs(low), abs(high))
    pad = 0.5 * max(size, 1.0) if high - low <= RESOLUTION * size + SMALLEST else 0.0
    return View(low - pad, high + pad)


def histogram(section: Section, prefix: str) -> Markup:
    """The distribution of novelty in each group of rows, with the threshold marked."""
    groups = groups_of(section)
    view = view_of(list(groups.values()), section.threshold)
    figure = draw_histogram(section, groups, view)
    drawing = inline_svg(figure, prefix=prefix, description=f"Histogram of novelty of {' and '.join(groups)}")
    keys = [
        Key(f"{name} ({len(novelty):,} rows)", colour)
        for (name, novelty), colour in zip(groups.items(), COLOURS, strict=False)
    ]
    return figure_element(drawing, "Distribution of novelty", [*keys, _threshold_key(section)], _note(groups, view))


def draw_histogram(section: Section, groups: Mapping[str, FloatArray], view: View) -> Figure:
    """Draws each group's share of rows per bar; rows beyond the axis are counted in the outermost bars."""
    width = 6.6 if section.truth_is_known else 10.4
    figure, axes = blank_axes(width, 3.4, x_label=_axis_label(view), y_label="share of the group's rows (%)")
    edges = view.edges(_bin_count(list(groups.values())))
    for novelty, colour in zip(groups.values(), COLOURS, strict=False):
        counts, _ = np.histogram(np.clip(novelty, view.low, view.high), edges)
        share = 100 * counts / len(novelty)
        axes.stairs(share, edges, fill=True, color=colour, alpha=0.35, linewidth=0)
        axes.stairs(share, edges, color=colour, linewidth=1.4)
    if np.isfinite(section.threshold):
        axes.axvline(section.threshold, color=INK, linewidth=1.4, linestyle=(0, (4, 3)))
    axes.set_xscale("log" if view.log else "linear")
    axes.set_xlim(view.low, view.high)
    axes.set_ylim(bottom=0)
    return figure


def groups_of(section: Section) -> dict[str, FloatArray]:
    """Name → scores of the groups of rows that a section compares."""
    if section.truth_is_known:
        return {"normal": section.normal_novelty, "novel": section.novel}
    if section.calibration_novelty is not None and len(section.calibration_novelty):
        return {"held-out normal": section.calibration_novelty, "scored": section.normal_novelty}
    return {"scored": section.normal_novelty}


def _threshold_key(section: Section) -> Key:
    if section.by_class:
        return Key(f"threshold {number(section.threshold)} of all classes; p-values by class decide", INK, "dashed")
    promise = "" if section.alpha is None else f", set for {percent(section.alpha)} false alarms"
    return Key(f"threshold {number(section.threshold)}{promise}", INK, "dashed")


def _axis_label(view: View) -> str:
    return f"novelty ({'log scale, ' if view.log else ''}higher = more novel)"


def _bin_count(groups: Sequence[FloatArray]) -> int:
    # An odd number, so that scores that are all the same get the bar in the middle.
    return int(np.clip(2 * np.sqrt(min(map(len, groups))), 13, 49)) | 1


def _note(groups: Mapping[str, FloatArray], view: View) -> str:
    outside = {name: view.beyond(novelty) for name, novelty in groups.items()}
    infinite = sum(int(np.isinf(novelty).sum()) for novelty in groups.values())
    if not any(outside.values()):
        return ""
    listed = " and ".join(f"{count:,} of {len(groups[name]):,} {name}" for name, count in outside.items() if count)
    endless = f", {infinite:,} of them infinite" if infinite else ""
    return f"The axis is cut: {listed} rows lie beyond its ends and are counted in the outermost bars{endless}."
