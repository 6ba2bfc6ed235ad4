"""An explanation as one SVG picture, in the colours of the report, which follow the theme of the page around it."""

import base64
import io
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from offmap.explain.explanation import Explanation
from offmap.explain.wording import usual_in_words, value_in_words

INK, MUTED, GRID = "var(--ink, #1d2733)", "var(--muted, #5b6876)", "var(--grid, #e3e7ec)"
NORMAL, NOVEL = "var(--normal, #0072b2)", "var(--novel, #d55e00)"
WIDTH = 720
SHOWN = 8
"""How many features are drawn."""


def draw(explanation: Explanation) -> str:
    """The picture: bars per feature, marked words, or the image beside a normal one."""
    body = Element("g")
    drawn = {"features": _features, "text": _text, "image": _image}[explanation.kind]
    height = 34 + drawn(body, explanation)
    svg = Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height:g}",
        role="img",
        style="max-width: 100%; font-family: system-ui, sans-serif",
    )
    svg.set("aria-label", f"Why row {explanation.row} is {'novel' if explanation.novel else 'normal'}")
    p_value = "" if explanation.p_value is None else f", p-value {explanation.p_value:.2g}"
    state = f"Row {explanation.row}: {'novel' if explanation.novel else 'normal'}{p_value}"
    _write(svg, 8, 18, state, size=14, weight="600")
    svg.append(body)
    return tostring(svg, encoding="unicode")


def _features(body: Element, explanation: Explanation) -> float:
    """One bar per feature, the longest first; bars to the left make the row more normal."""
    order = np.argsort(-np.abs(explanation.contributions), kind="stable")[:SHOWN]
    longest = float(np.abs(explanation.contributions[order]).max()) or 1.0
    order = order[np.argsort(-explanation.contributions[order], kind="stable")]
    left, right = 190, WIDTH - 290
    lowest = min(float(explanation.contributions[order].min()), 0.0)
    zero = left + (right - left) * (-lowest / (longest - lowest))
    scale = (right - zero) / longest
    for line, j in enumerate(order.tolist()):
        top = 34 + 26 * line
        length = float(explanation.contributions[j]) * scale
        _write(body, left - 8, top + 14, _cut(explanation.parts[j], 26), anchor="end")
        colour = NOVEL if length > 0 else NORMAL
        _box(body, min(zero, zero + length), top + 3, max(abs(length), 1), 16, colour)
        _write(body, right + 12, top + 14, value_in_words(explanation.values[j]), weight="600")
        _write(body, right + 96, top + 14, f"usually {usual_in_words(explanation.usual[j])}", colour=MUTED)
    bottom = 34 + 26 * len(order)
    line_ = SubElement(body, "path", d=f"M{zero:g} 32V{bottom}", stroke=MUTED)
    line_.set("stroke-width", "1")
    note = "Orange makes the row novel, blue makes it normal."
    _write(body, 8, bottom + 20, note, colour=MUTED, size=12)
    return 26 * len(order) + 30


def _text(body: Element, explanation: Explanation) -> float:
    """The text with its parts marked, the stronger the more each contributes; below it the nearest known text."""
    strongest = float(np.maximum(explanation.contributions, 0).max()) or 1.0
    x, y = 12.0, 38.0
    for part, contribution in zip(explanation.parts, explanation.contributions, strict=True):
        strength = max(0.0, float(contribution)) / strongest
        for word in part.split():
            width = _LETTER * len(word) + 10
            if x + width > WIDTH - 12:
                x, y = 12.0, y + 30
            marked = _box(body, x - 3, y, width, 24, NOVEL, corner=0)
            marked.set("fill-opacity", f"{0.55 * strength:.2f}")
            _write(body, x + 2, y + 16.5, word, size=15, mono=True)
            x += width
    _write(body, 8, y + 52, f"Nearest known text: {_cut(str(explanation.neighbor_rows[0]), 84)}", colour=MUTED)
    _write(body, 8, y + 72, "The stronger a mark, the more novel the text is because of it.", colour=MUTED, size=12)
    return y + 48


def _image(body: Element, explanation: Explanation) -> float:
    """The image, the same with its places marked, the nearest normal image, and the counterfactual."""
    panels = [("the image", explanation.image), ("what makes it novel", explanation.image)]
    panels.append(("nearest normal image", explanation.neighbor_rows[0]))
    if explanation.counterfactual is not None:
        panels.append(("would be normal", np.reshape(explanation.counterfactual.row, explanation.image.shape)))
    height, width = explanation.image.shape[:2]
    side = 164.0
    tall = side * height / width
    for place, (title, image) in enumerate(panels):
        left = 8 + place * (side + 14)
        shown = SubElement(body, "image", href=_png(image), x=f"{left:g}", y="32", style="image-rendering: pixelated")
        shown.attrib |= {"width": f"{side:g}", "height": f"{tall:g}", "preserveAspectRatio": "none"}
        frame = _box(body, left, 32, side, tall, "none", 0)
        frame.set("stroke", GRID)
        _write(body, left, tall + 50, title, colour=MUTED)
        if place == 1:
            _places(body, explanation, left, side / width, tall / height)
    return tall + 30


def _places(body: Element, explanation: Explanation, left: float, across: float, down: float) -> None:
    strongest = float(np.maximum(explanation.contributions, 0).max()) or 1.0
    for place, contribution in enumerate(explanation.contributions.tolist()):
        if contribution <= 0:
            continue
        pixels = np.argwhere(explanation.grid == place)
        (top, first), (bottom, last) = pixels.min(axis=0), pixels.max(axis=0) + 1
        box = _box(
            body, left + first * across, 32 + top * down, (last - first) * across, (bottom - top) * down, NOVEL, 0
        )
        box.set("fill-opacity", f"{0.75 * contribution / strongest:.2f}")


def _png(image: NDArray[Any]) -> str:
    pixels = image if image.dtype == np.uint8 else np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels[..., :3]).save(stream, format="png")
    return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"


def _write(
    parent: Element,
    x: float,
    y: float,
    text: str,
    *,
    size: float = 13,
    weight: str = "400",
    colour: str = INK,
    anchor: str = "start",
    mono: bool = False,
) -> None:
    written = SubElement(parent, "text", x=f"{x:g}", y=f"{y:g}", fill=colour)
    written.attrib |= {"font-size": f"{size:g}", "font-weight": weight, "text-anchor": anchor}
    if mono:
        written.set("font-family", "ui-monospace, Menlo, Consolas, monospace")
    written.text = _printable(text)


def _box(parent: Element, x: float, y: float, width: float, height: float, colour: str, corner: float = 3) -> Element:
    where = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
    return SubElement(parent, "rect", where, fill=colour, rx=f"{corner:g}")


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def _printable(text: str) -> str:
    """Text without control characters, which XML does not allow."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


# Width of a letter of the monospaced font at size 15.
_LETTER = 9.05
