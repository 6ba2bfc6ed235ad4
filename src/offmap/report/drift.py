"""The picture of a monitored stream: the martingale's capital, the level of the alarm, and when the change began."""

import os
from collections.abc import Sequence

import numpy as np

from offmap.arrays import FloatArray
from offmap.files import replacing
from offmap.report.markup import Markup, element
from offmap.report.style import STYLE
from offmap.report.svg import INK, MUTED, NORMAL, NOVEL, Key, blank_axes, figure_element, inline_svg

# More points than this cannot be told apart in the picture, and would make the file large.
_MOST_POINTS = 2000


def drift_figure(path: FloatArray, level: float, alarm_row: int | None, since: int | None, prefix: str) -> Markup:
    """Draws the logarithm of the capital over the rows of the stream.

    Args:
        path: The logarithm of the capital after each row.
        level: The capital at which the alarm is raised.
        alarm_row: The row of the alarm, if there was one.
        since: The row at which the change began, if there was one.
        prefix: What the identifiers inside the picture begin with.

    Example:
        >>> "<svg" in drift_figure(np.zeros(5), 100.0, None, None, "drift")
        True
    """
    figure, axes = blank_axes(7.2, 2.8, x_label="row of the stream", y_label="log capital")
    shown = np.unique(np.linspace(0, max(len(path) - 1, 0), min(len(path), _MOST_POINTS)).astype(int))
    axes.plot(shown, path[shown], color=NORMAL, linewidth=1.4)
    axes.axhline(np.log(level), color=INK, linewidth=1.2, linestyle="--")
    keys = [Key("log capital", NORMAL, "line"), Key(f"alarm at log {level:g}", INK, "dashed")]
    for row, colour, label in ((since, MUTED, "change began"), (alarm_row, NOVEL, "alarm")):
        if row is not None:
            axes.axvline(row, color=colour, linewidth=1.2, linestyle=":")
            keys.append(Key(f"{label}, row {row:,}", colour, "dotted"))
    return figure_element(inline_svg(figure, prefix=prefix, description="Drift"), "Drift", keys)


def write_drift_page(path: str | os.PathLike[str], figure: Markup, lines: Sequence[str]) -> None:
    """Writes the picture and what is known of the stream as one HTML file that needs nothing beside it."""
    head = element("head", element("meta", charset="utf-8"), element("title", "Drift"), element("style", Markup(STYLE)))
    words = (element("p", line) for line in lines)
    body = element("body", element("main", element("h1", "Drift"), *words, figure))
    with replacing(path) as fresh:
        fresh.write_text(f"<!doctype html>\n{element('html', head, body, lang='en')}\n", encoding="utf-8")
