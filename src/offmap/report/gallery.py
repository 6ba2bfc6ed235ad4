"""Rows worth a look: images as pictures, texts as texts, features as a table."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from offmap.report.markup import Markup, element, join, number, table
from offmap.report.model import Examples, FloatArray, Kind
from offmap.report.pictures import pictures

FEATURES_SHOWN = 7
LONGEST_TEXT = 400
DEVIATES = 2.0
"""Standard deviations from the normal mean at which a value is marked."""
MARKED_STRONGLY = 3
"""How many values of a row, those that deviate most, are marked strongly."""


def gallery(examples: Examples, threshold: float) -> Markup:
    """The rows under their title; ``threshold`` flags them where the examples hold no decisions."""
    body = _DRAWN[examples.kind](examples, threshold)
    return element("div", element("h4", examples.title), body, class_="examples")


def _images(examples: Examples, threshold: float) -> Markup:
    shown = pictures(np.asarray(examples.rows), [f"row {name}" for name in examples.index])
    facts, flags = _facts(examples), examples.flags(threshold)
    tiles = []
    for position, picture in enumerate(shown):
        lines = (element("span", f"{name} ", element("b", values[position])) for name, values in facts.items())
        css_class = "tile flagged" if flags[position] else "tile"
        tiles.append(element("li", picture, *lines, class_=css_class))
    note = element("p", "A coloured edge marks flagged rows.", class_="note")
    return join([element("ul", *tiles, class_="tiles"), *([note] if flags.any() else [])])


def _texts(examples: Examples, threshold: float) -> Markup:
    facts = _facts(examples) | _flagged(examples, threshold)
    rows = (
        [element("td", _cut(str(text)), class_="text"), *values]
        for text, *values in zip(examples.rows, *facts.values(), strict=True)
    )
    return table(["text", *_heads(facts)], _with_reasons(rows, examples))


def _cells(examples: Examples, threshold: float) -> Markup:
    """The cells of a table as they are, the first columns of a wide one."""
    names = examples.feature_names or [f"column {place}" for place in range(np.shape(examples.rows)[1])]
    facts = _facts(examples) | _flagged(examples, threshold)
    rows = (
        [*(fact[row] for fact in facts.values()), *(_plain_cell(cell) for cell in cells[:FEATURES_SHOWN])]
        for row, cells in enumerate(examples.rows)
    )
    shown = table([*_heads(facts), *names[:FEATURES_SHOWN]], _with_reasons(rows, examples))
    note = f"{FEATURES_SHOWN} of {len(names)} columns, the first ones." if len(names) > FEATURES_SHOWN else ""
    return join([shown, element("p", note, class_="note")]) if note else shown


def _plain_cell(cell: Any) -> str:
    cell = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int | float):
        return number(float(cell))
    return "–" if cell is None else _cut(str(cell))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT].rstrip()} …"


def _features(examples: Examples, threshold: float) -> Markup:
    values = np.asarray(examples.rows, dtype=np.float64)
    names = examples.feature_names
    if names is None:
        names = [f"feature {column}" for column in range(values.shape[1])]
    deviations = deviations_of(examples)
    columns = range(values.shape[1])[:FEATURES_SHOWN] if deviations is None else most_telling(deviations)
    facts = _facts(examples) | _flagged(examples, threshold)
    rows = (
        [
            *(column[row] for column in facts.values()),
            *(_value(values, deviations, row, feature) for feature in columns),
        ]
        for row in range(len(values))
    )
    shown = table([*_heads(facts), *(names[column] for column in columns)], _with_reasons(rows, examples))
    note = _features_note(deviations, len(columns), values.shape[1])
    return join([shown, element("p", note, class_="note")]) if note else shown


def deviations_of(examples: Examples) -> FloatArray | None:
    """Standard deviations between each value and the normal mean; infinite where normal rows never vary."""
    if examples.normal_mean is None or examples.normal_sd is None:
        return None
    difference = np.asarray(examples.rows, dtype=np.float64) - examples.normal_mean
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = difference / examples.normal_sd
    return np.where(difference == 0, 0.0, deviations)


def most_telling(deviations: FloatArray) -> list[int]:
    """The features to show, in their own order: those that deviate most in some row.

    Example:
        >>> most_telling(np.array([[0, 1, 2, 3, 4, 5, 6, 7, -8]]))
        [2, 3, 4, 5, 6, 7, 8]
    """
    largest = np.abs(deviations).max(axis=0)
    return sorted(np.argsort(-largest, kind="stable")[:FEATURES_SHOWN].tolist())


def _value(values: FloatArray, deviations: FloatArray | None, row: int, feature: int) -> Markup:
    if deviations is None or abs(deviations[row, feature]) < DEVIATES:
        return element("td", number(values[row, feature]))
    deviation = deviations[row, feature]
    stronger = int((np.abs(deviations[row]) > abs(deviation)).sum())
    shown = f"{number(values[row, feature])} {'▲' if deviation > 0 else '▼'}"
    title = f"{number(deviation)} standard deviations from the normal mean"
    return element("td", shown, class_="far" if stronger < MARKED_STRONGLY else "off", title=title)


def _features_note(deviations: FloatArray | None, shown: int, features: int) -> str:
    chosen = "" if shown == features else f"{shown} of {features} features, the "
    if deviations is None:
        return f"{chosen}first ones." if chosen else ""
    chosen = f"{chosen}ones that deviate most. " if chosen else ""
    return (
        f"{chosen}▲ and ▼ mark values at least {DEVIATES:g} standard deviations above or below the mean of normal "
        f"rows; the {MARKED_STRONGLY} strongest of a row are bold."
    )


def _facts(examples: Examples) -> dict[str, Sequence[str]]:
    """Name → what is known of each row."""
    facts: dict[str, Sequence[str]] = {"row": [str(name) for name in examples.index]}
    facts |= {name: [_cut(str(value)) for value in values] for name, values in examples.identity.items()}
    if examples.entity is not None:
        facts["entity"] = [str(entity) for entity in examples.entity]
    facts["novelty"] = [number(value) for value in examples.novelty]
    if examples.p_value is not None:
        facts["p-value"] = [f"{value:.2g}" for value in examples.p_value]
    if examples.truth is not None:
        facts["truth"] = [str(label) for label in examples.truth]
    if examples.predicted is not None:
        facts["predicted"] = [str(label) for label in examples.predicted]
    return facts


def _heads(facts: Iterable[str]) -> list[Markup]:
    return [element("th", name, class_="fact", scope="col") for name in facts]


def _flagged(examples: Examples, threshold: float) -> dict[str, Sequence[str]]:
    return {"flagged": ["yes" if flag else "no" for flag in examples.flags(threshold)]}


def _with_reasons(rows: Iterable[list[str]], examples: Examples) -> Iterator[list[str]]:
    """Each row and, on a line of its own, why it is novel: beside the cells it would be out of sight on a phone."""
    for place, row in enumerate(rows):
        yield row
        if examples.reasons is not None and (reason := examples.reasons[place]):
            words = element("div", " · ".join(reason.split("\n")))
            yield [element("td", words, class_="why", colspan=str(len(row)))]


_DRAWN: Mapping[Kind, Callable[[Examples, float], Markup]] = {
    "images": _images,
    "texts": _texts,
    "features": _features,
    "table": _cells,
}
