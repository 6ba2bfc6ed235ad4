"""HTML that is safe by construction: plain strings are escaped, only ``Markup`` passes as it is."""

import math
import re
from collections.abc import Iterable
from html import escape

from offmap.errors import printable

_LONGEST = 2_000
_KEPT = re.compile(r"([\n\u200c\u200d])")
VOID_ELEMENTS = frozenset({"br", "hr", "img", "meta"})


class Markup(str):
    """A string that is HTML already."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | None) -> Markup:
    """Makes an HTML element; children and attributes that are not ``Markup`` are escaped.

    An attribute of ``None`` is left out. A name ends in ``_`` where Python reserves the word, and its other underscores
    stand for hyphens.

    Example:
        >>> element("p", "a < b", element("br"), class_="note")
        '<p class="note">a &lt; b<br></p>'
    """
    stated = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    # Not cut, as texts are: the source of a picture is long.
    opening = "".join(f' {key}="{escape(printable(value, longest=len(value)))}"' for key, value in stated.items())
    if name in VOID_ELEMENTS:
        return Markup(f"<{name}{opening}>")
    return Markup(f"<{name}{opening}>{join(children)}</{name}>")


def join(parts: Iterable[str]) -> Markup:
    """Strings one after the other, each escaped unless it is ``Markup``."""
    return Markup("".join(part if isinstance(part, Markup) else escape(readable(part)) for part in parts))


def readable(text: str) -> str:
    """Text that cannot reorder or flood a page: bidirectional and control characters are escaped, and it is cut.

    Line breaks stay, and so do the joiners that Persian and many emoji are written with.

    Example:
        >>> len(readable("x" * 20_000)), readable("two\\nlines")
        (2001, 'two\\nlines')
    """
    parts = _KEPT.split(text[:_LONGEST])
    return "".join(part if _KEPT.match(part) else printable(part) for part in parts) + "…" * (len(text) > _LONGEST)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Markup:
    """An HTML table whose cells are escaped, in a box that scrolls where the page is too narrow.

    Args:
        head: The column headings.
        rows: The cells of each row.

    A heading that is a ``<th>`` already and a cell that is a ``<td>`` already are kept as they are.
    """
    heading = element("tr", *(_cell("th", content) for content in head))
    body = (element("tr", *(_cell("td", content) for content in row)) for row in rows)
    content = element("table", element("thead", heading), element("tbody", *body))
    return element("div", content, class_="scroll")


def _cell(name: str, content: str) -> Markup:
    is_cell = isinstance(content, Markup) and content.startswith(f"<{name}")
    return Markup(content) if is_cell else element(name, content, scope="col" if name == "th" else None)


def number(value: float | None) -> str:
    """A number as a reader writes it: to four significant digits, or to the unit where it is large.

    Example:
        >>> [number(value) for value in (0.97314, 12.0, 1234567.8, 1e12, float("-inf"), None)]
        ['0.9731', '12', '1,234,568', '1e+12', '-∞', '–']
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def metric(value: float | None) -> str:
    """A metric: a share with four decimals, so that columns line up; any other number as ``number`` has it.

    Example:
        >>> metric(0.5), metric(12.5)
        ('0.5000', '12.5')
    """
    return f"{value:.4f}" if value is not None and abs(value) <= 1 else number(value)


def percent(share: float) -> str:
    """A share as a percentage with one decimal, or more where it would round to nothing.

    Example:
        >>> percent(0.0483), percent(0.0002)
        ('4.8%', '0.02%')
    """
    return f"{100 * share:.1f}%" if share == 0 or share >= 0.001 else f"{100 * share:.1g}%"
