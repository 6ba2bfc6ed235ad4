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
"""An axis this many times as wide as the central 90 % of the first group hides that group's shape."""
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
    if not finite:
        return _spanning(marks or [0.0])
    whole = _spanning([*marks, *(end for novelty in finite for end in (novelty.min(), novelty.max()))])
    robust = _spanning([*marks, *(end for novelty in finite for end in np.quantile(novelty, [TAIL, 1 - TAIL]))])
    reach = LIGHT_TAIL * (robust.high - robust.low)
    low = whole.low if robust.low - whole.low <= reach else robust.low
    high = whole.high if whole.high - robust.high <= reach else robust.high
    return _unsqueezed(View(low, high), finite[0], marks)


def _unsqueezed(view: View, reference: FloatArray, marks: Sequence[float]) -> View:
    lower, upper = np.quantile(reference, [0.05, 0.95])
    body = upper - lower
    if body == 0 or view.high - view.low <= STRETCHED * body:
        return view
    if view.low > 0:
        return View(view.low, view.high, log=True)
    room = STRETCHED / 2 * body
    return _spanning([max(view.low, lower - room), min(view.high, upper + room), *marks])


def _spanning(values: Sequence[float]) -> View:
    """The axis from the least value to the greatest, with room around them if they are the same."""
    low, high = float(min(values)), float(max(values))
    pad = 0.5 * max(abs(low), 1.0) if low == high else 0.0
    return View(low - pad, high + pad)


def histogram(section: Section, prefix: str) -> Markup:
    """The distribution of novelty in each group of rows, with the threshold marked."""
    groups = groups_of(section)
    view = view_of(list(groups.values()), section.threshold)
    drawing = inline_svg(
        _drawn(section, groups, view), prefix=prefix, description=f"Histogram of novelty of {' and '.join(groups)}"
    )
    keys = [
        Key(f"{name} ({len(novelty):,} rows)", colour)
        for (name, novelty), colour in zip(groups.items(), COLOURS, strict=False)
    ]
    return figure_element(drawing, "Distribution of novelty", [*keys, _threshold_key(section)], _note(groups, view))


def _drawn(section: Section, groups: Mapping[str, FloatArray], view: View) -> Figure:
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
