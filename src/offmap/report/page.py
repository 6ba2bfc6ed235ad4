"""The page: headline, comparison, and a panel per method."""

import os
from collections.abc import Iterator, Mapping, Sequence
from textwrap import shorten

from offmap.files import replacing
from offmap.report.cards import best_of, cards
from offmap.report.gallery import gallery
from offmap.report.markup import Markup, element, join, metric, number, table
from offmap.report.measures import MEASURES, title_of
from offmap.report.model import Report, Section, SummaryTable
from offmap.report.style import STYLE

THRESHOLD_MEANINGS = {
    False: "Rows with a higher novelty are flagged.",
    True: "That of all classes together, which does not decide: rows are flagged by their p-value by class.",
}
"""What the threshold means, without and with p-values by class."""
LONGEST_VALUE = 200
"""Characters of a parameter that are shown; some parameters are whole objects."""


def write_report(path: str | os.PathLike[str], report: Report) -> None:
    """Writes the report as one HTML file that needs nothing beside it; a failure leaves an old file as it was.

    Example:
        >>> import tempfile, numpy as np
        >>> section = Section(name="distance", normal_novelty=np.arange(9.0), threshold=7.5)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_report(f"{folder}/report.html", Report(title="A run", sections=[section]))
    """
    page = render(report)
    with replacing(path) as fresh:
        fresh.write_text(page, encoding="utf-8")


def render(report: Report) -> str:
    """The report as an HTML page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", report.title),
        element("style", Markup(STYLE)),
    )
    body = element("body", element("main", *_content(report)))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _content(report: Report) -> Iterator[Markup]:
    yield element("h1", report.title)
    if report.summary:
        yield element("p", report.summary, class_="lead")
    if report.sections:
        yield from _overview(report.sections)
    for summary in report.tables:
        yield element("section", element("h3", summary.title), _comparison(summary), class_="panel")
    for place, section in enumerate(report.sections, start=1):
        yield _panel(section, f"method-{place}", alone=len(report.sections) == 1)
    if report.facts:
        yield element("section", element("h3", "About this run"), _pairs(report.facts), class_="panel")
    yield element("footer", "Written by Offmap.")


def _overview(sections: Sequence[Section]) -> Iterator[Markup]:
    if len(sections) == 1:
        yield cards(sections[0])
        return
    best = best_of(sections)
    if best is not None:
        yield element("p", "Best by AUROC: ", element("b", best.name), class_="cards-of")
        yield cards(best)
    links = (element("a", section.name, href=f"#method-{place}") for place, section in enumerate(sections, start=1))
    yield element("nav", element("ul", *(element("li", link) for link in links)), aria_label="Methods")


def _comparison(summary: SummaryTable) -> Markup:
    best = [_best(summary, position) for position in range(len(summary.columns))]
    rows = (
        [method, *(_compared(value, top) for value, top in zip(values, best, strict=True))]
        for method, values in summary.rows.items()
    )
    note = [element("p", summary.note, class_="note")] if summary.note else []
    return join([table(["method", *summary.columns], rows), *note])


def _best(summary: SummaryTable, position: int) -> float | None:
    """The value to mark in a column, if one end of it is better and there is something to compare."""
    values = [row[position] for row in summary.rows.values()]
    known = [value for value in values if value is not None]
    end = summary.better.get(summary.columns[position])
    if end is None or len(known) < 2:
        return None
    return max(known) if end == "higher" else min(known)


def _compared(value: float | None, best: float | None) -> Markup:
    marked = value is not None and value == best
    return element("td", metric(value), class_="best" if marked else None)


def _panel(section: Section, prefix: str, *, alone: bool) -> Markup:
    # Commands that draw nothing need not wait until the plotting library is loaded.
    from offmap.report.curves import roc_figure, training_figure
    from offmap.report.histogram import histogram

    description = [element("p", section.description)] if section.description else []
    header = element("header", element("h2", section.name), *description)
    parts = [header] if alone else [header, cards(section)]
    figures = [histogram(section, f"{prefix}-novelty")]
    if section.truth_is_known:
        figures.append(roc_figure(section, f"{prefix}-roc"))
    parts.append(element("div", *figures, class_="figures" if section.truth_is_known else None))
    parts.append(element("div", _metrics(section), _parameters(section), class_="columns"))
    if any(len(values) for values in section.history.values()):
        parts.append(training_figure(section.history, f"{prefix}-training"))
    parts += [gallery(examples, section.threshold) for examples in section.examples if len(examples.rows)]
    return element("section", *parts, class_="panel", id=prefix)


def _metrics(section: Section) -> Markup:
    meanings = {name: measure.meaning for name, measure in MEASURES.items()}
    rows = [["threshold", number(section.threshold), _words(THRESHOLD_MEANINGS[section.by_class])]]
    rows += [[title_of(name), metric(value), _words(meanings.get(name, ""))] for name, value in section.metrics.items()]
    shown = table(["metric", "value", element("th", "meaning", class_="words", scope="col")], rows)
    return element("div", element("h4", "Metrics"), shown)


def _words(text: str) -> Markup:
    return element("td", text, class_="words")


def _parameters(section: Section) -> Markup:
    return element("div", element("h4", "Parameters"), _pairs(section.parameters)) if section.parameters else Markup()


def _pairs(values: Mapping[str, object]) -> Markup:
    texts = {name: value if isinstance(value, str) else repr(value) for name, value in values.items()}
    rows = (
        [name, element("td", shorten(text, LONGEST_VALUE, placeholder=" …"), class_="value")]
        for name, text in texts.items()
    )
    return table(["name", "value"], rows)
