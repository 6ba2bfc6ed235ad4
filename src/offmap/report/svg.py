"""Matplotlib figures as inline SVG that follows the page's theme.

Figures hold numbers only: every name a user chose stands in an HTML legend beside them, where it is escaped and wraps.
No figure touches ``pyplot`` or ``rcParams``.
"""

import io
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from offmap.report.markup import Markup, element

INK = "#1d2733"
MUTED = "#5b6876"
GRID = "#e3e7ec"
NORMAL = "#0072b2"
NOVEL = "#d55e00"
# Okabe and Ito's palette, which readers with any colour vision tell apart.
LINES = (NORMAL, NOVEL, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", MUTED)
_VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    NORMAL: "--normal",
    NOVEL: "--novel",
    LINES[2]: "--line-3",
    LINES[3]: "--line-4",
    LINES[4]: "--line-5",
    LINES[5]: "--line-6",
}


Mark = Literal["area", "line", "dashed", "dotted", "point"]


class Key(NamedTuple):
    """An entry of a legend: what is drawn as a ``mark`` of this colour."""

    label: str
    colour: str
    mark: Mark = "area"


def blank_axes(width: float, height: float, *, x_label: str, y_label: str) -> tuple[Figure, Axes]:
    """An empty figure of the given size in inches, with labelled axes in the report's style."""
    figure = Figure(figsize=(width, height), facecolor="none", layout="constrained")
    axes = figure.add_subplot(facecolor="none", axisbelow=True)
    axes.set_xlabel(x_label, color=INK, fontsize=9, labelpad=6)
    axes.set_ylabel(y_label, color=INK, fontsize=9, labelpad=6)
    axes.tick_params(which="both", color=MUTED, labelcolor=MUTED, labelsize=8.5)
    axes.grid(visible=True, color=GRID, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(MUTED)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_offset_text().set(color=MUTED, fontsize=8.5)
    return figure, axes


def inline_svg(figure: Figure, *, prefix: str, description: str) -> Markup:
    """Draws the figure as an SVG element for the inside of a page.

    Identifiers are numbered under ``prefix``, so that figures on a page do not borrow each other's shapes and the same
    figure always gives the same bytes. Colours become CSS variables, so that the page's theme decides.
    """
    stream = io.StringIO()
    figure.savefig(stream, format="svg", facecolor="none")
    [(box, drawn)] = re.findall(r'<svg[^>]* viewBox="([^"]+)"[^>]*>(.*)</svg>', stream.getvalue(), flags=re.DOTALL)
    # The metadata holds the date and addresses; the style sheet would reach the whole page.
    content = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", drawn, flags=re.DOTALL)
    content = _with_theme(_with_own_ids(content, prefix).replace("xlink:href", "href"))
    return element("svg", Markup(content), viewBox=box, role="img", aria_label=description)


def figure_element(drawing: Markup, title: str, keys: Sequence[Key], note: str = "") -> Markup:
    """A drawing under its title and legend, with a note below."""
    legend = element("ul", *(element("li", swatch(key), key.label) for key in keys), class_="legend")
    notes = [element("p", note, class_="note")] if note else []
    return element("figure", element("figcaption", element("h4", title), legend), drawing, *notes)


def swatch(key: Key) -> Markup:
    """The small picture of a legend entry: an area, a line, a dashed line or a point."""
    shapes: dict[Mark, str] = {
        "area": '<rect x="1" y="2" width="16" height="8" rx="2"/>',
        "line": '<path d="M0 6H18"/>',
        "dashed": '<path d="M0 6H18" stroke-dasharray="4 3"/>',
        "dotted": '<path d="M0 6H18" stroke-dasharray="1.5 2.5"/>',
        "point": '<circle cx="9" cy="6" r="4.5"/>',
    }
    css_class = f"swatch {'filled' if key.mark in ('area', 'point') else 'stroked'}"
    colour = f"color: {_themed(key.colour)}"
    return element(
        "svg", Markup(shapes[key.mark]), viewBox="0 0 18 12", class_=css_class, style=colour, aria_hidden="true"
    )


def _with_own_ids(content: str, prefix: str) -> str:
    names = {name: f"{prefix}-{position}" for position, name in enumerate(re.findall(r' id="([^"]+)"', content))}
    return re.sub(r'( id="|href="#|url\(#)([^")]+)', lambda match: match[1] + names[match[2]], content)


def _with_theme(content: str) -> str:
    return re.sub(r"#[0-9a-f]{6}\b", lambda match: _themed(match[0]), content)


def _themed(colour: str) -> str:
    return f"var({_VARIABLES[colour]}, {colour})" if colour in _VARIABLES else colour
