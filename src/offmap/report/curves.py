"""Lines: the ROC curve with the operating point, and the training curves."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from sklearn.metrics import roc_curve as roc_points

from offmap.report.markup import Markup, percent
from offmap.report.model import FloatArray, Section
from offmap.report.svg import INK, LINES, MUTED, NORMAL, Key, Mark, blank_axes, figure_element, inline_svg

STYLES: Mapping[Mark, tuple[int, tuple[float, ...]]] = {
    "line": (0, ()),
    "dashed": (0, (4, 3)),
    "dotted": (0, (1, 1.7)),
}
FEW_EPOCHS = 20
WIDE_RANGE = 50.0
"""Ratio of the largest to the smallest value above which a logarithmic axis is drawn."""


def roc_figure(section: Section, prefix: str) -> Markup:
    """Recall of novel rows against false alarms for every threshold, with the section's own decisions marked."""
    false_alarms, recall = operating_point(section)
    decided_by = "p-values by class" if section.by_class else "this threshold"
    keys = [
        Key("all thresholds", NORMAL, "line"),
        Key(f"{decided_by}: {percent(recall)} found, {percent(false_alarms)} false alarms", INK, "point"),
        Key("guessing", MUTED, "dotted"),
    ]
    return figure_element(inline_svg(draw_roc(section), prefix=prefix, description="ROC curve"), "ROC curve", keys)


def draw_roc(section: Section) -> Figure:
    """Draws the curve, the operating point, and the diagonal that guessing gives."""
    labels = {"x_label": "false alarms: normal rows flagged (%)", "y_label": "novel rows flagged (%)"}
    figure, axes = blank_axes(4.1, 3.4, **labels)
    curve, point = np.array(roc_curve(section.normal_novelty, section.novel)), np.array(operating_point(section))
    axes.plot([0, 100], [0, 100], color=MUTED, linewidth=1, linestyle=STYLES["dotted"])
    axes.plot(*(100 * curve), color=NORMAL, linewidth=2, clip_on=False)
    axes.plot(*(100 * point), "o", color=INK, markersize=7, clip_on=False, zorder=5)
    axes.set(xlim=(0, 100), ylim=(0, 100), xticks=range(0, 101, 20), yticks=range(0, 101, 20), aspect="equal")
    return figure


def roc_curve(normal: FloatArray, novel: FloatArray) -> tuple[FloatArray, FloatArray]:
    """False-alarm rate and recall at every threshold, from the strictest on; infinite scores count as extremes.

    Example:
        >>> roc_curve(np.array([0.0, 1.0]), np.array([2.0, np.inf]))
        (array([0., 0., 0., 1.]), array([0. , 0.5, 1. , 1. ]))
    """
    ranks = np.unique(np.concatenate([normal, novel]), return_inverse=True)[1]
    false_alarms, recall, _ = roc_points(np.repeat([0, 1], [len(normal), len(novel)]), ranks)
    return false_alarms, recall


def operating_point(section: Section) -> tuple[float, float]:
    """The share of normal rows and of novel rows that are flagged."""
    return float(np.mean(section.normal_flags)), float(np.mean(section.novel_flags))


def training_figure(history: Mapping[str, Sequence[float]], prefix: str) -> Markup:
    """One line per term of the objective over the epochs; values that are not finite leave gaps."""
    terms = {name: np.asarray(values, dtype=np.float64) for name, values in history.items() if len(values)}
    figure, axes = blank_axes(10.4, 3.0, x_label="epoch", y_label="value of the term")
    keys = [Key(name, *_look(position)) for position, name in enumerate(terms)]
    for key, values in zip(keys, terms.values(), strict=True):
        _draw_term(axes, key, values)
    if _spans_decades(np.concatenate(list(terms.values()))):
        axes.set_yscale("log")
        axes.set_ylabel("value of the term (log scale)")
    epochs = max(map(len, terms.values()))
    axes.set_xlim(*((1, epochs) if epochs > 1 else (0.5, 1.5)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return figure_element(inline_svg(figure, prefix=prefix, description="Training curves"), "Training", keys)


def _look(position: int) -> tuple[str, Mark]:
    """Colour and stroke of a line: the colours first, then the same ones dashed and dotted."""
    strokes = list(STYLES)
    return LINES[position % len(LINES)], strokes[position // len(LINES) % len(strokes)]


def _draw_term(axes: Axes, key: Key, values: FloatArray) -> None:
    shown = np.where(np.isfinite(values), values, np.nan)
    (line,) = axes.plot(np.arange(1, len(values) + 1), shown, color=key.colour, linewidth=1.8, clip_on=False)
    line.set_linestyle(STYLES[key.mark])
    # A line through one point, or between two gaps, would not be seen.
    if len(values) <= FEW_EPOCHS or not np.isfinite(values).all():
        line.set(marker="o", markersize=3.5)


def _spans_decades(values: FloatArray) -> bool:
    finite = values[np.isfinite(values)]
    return len(finite) > 0 and finite.min() > 0 and finite.max() > WIDE_RANGE * finite.min()
