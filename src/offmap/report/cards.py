"""The figures that a reader wants first, in large type."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from offmap.report.markup import Markup, element, percent
from offmap.report.measures import rate_interval
from offmap.report.model import Section


@dataclass(frozen=True, kw_only=True)
class Card:
    """One number in large type.

    Args:
        label: What it is.
        value: The number.
        context: What to hold it against.
        verdict: Whether that is good, in a few words.
        kept: Whether the verdict is a good one; None if it is neither good nor bad.
    """

    label: str
    value: str
    context: str
    verdict: str = ""
    kept: bool | None = True


def cards(section: Section) -> Markup:
    """The headline numbers of a section, side by side."""
    return element("ul", *map(_drawn, _chosen(section)), class_="cards")


def best_of(sections: Sequence[Section]) -> Section | None:
    """The section of the highest AUROC, if any has one."""
    measured = [section for section in sections if "auroc" in section.metrics]
    return max(measured, key=lambda section: section.metrics["auroc"], default=None)


def _chosen(section: Section) -> Iterator[Card]:
    metrics = section.metrics
    if "auroc" in metrics:
        yield Card(label="AUROC", value=f"{metrics['auroc']:.3f}", context="1 is perfect, 0.5 is guessing")
    if "false_alarm_rate" in metrics:
        yield _false_alarms(section, metrics["false_alarm_rate"])
    if "recall" in metrics:
        context = f"of {len(section.novel):,} novel rows are flagged"
        yield Card(label="Novel rows found", value=percent(metrics["recall"]), context=context)
    if "fpr95_novel" in metrics:
        context = "of normal rows flagged to find 95% of the novel (novel positive)"
        yield Card(label="FPR95", value=percent(metrics["fpr95_novel"]), context=context)
    if "flagged_rate" in metrics:
        yield from _unlabelled(section, metrics["flagged_rate"])


def _false_alarms(section: Section, rate: float) -> Card:
    low, high = rate_interval(int(section.normal_flags.sum()), len(section.normal_novelty))
    context = f"95% interval {percent(low)} to {percent(high)}"
    if section.alpha is None:
        return Card(
            label="False alarms", value=percent(rate), context=context, verdict="no rate was promised", kept=None
        )
    kept = low <= section.alpha
    relation = "within" if rate <= section.alpha else "consistent with" if kept else "above"
    verdict = f"{relation} the promised {percent(section.alpha)}"
    return Card(label="False alarms", value=percent(rate), context=context, verdict=verdict, kept=kept)


def _unlabelled(section: Section, rate: float) -> Iterator[Card]:
    rows = len(section.normal_novelty)
    yield Card(label="Rows scored", value=f"{rows:,}", context="of unknown truth")
    flagged = int(section.normal_flags.sum())
    yield Card(label="Rows flagged", value=f"{flagged:,}", context=f"{percent(rate)} of the rows")
    if section.alpha is not None:
        context = f"rows flagged if all were normal ({percent(section.alpha)})"
        yield Card(label="Expected by chance", value=f"{section.alpha * rows:,.0f}", context=context)


def _drawn(card: Card) -> Markup:
    tone = {True: "verdict good", False: "verdict bad", None: "verdict"}[card.kept]
    verdict = element("div", card.verdict, class_=tone)
    return element(
        "li",
        element("div", card.label, class_="label"),
        element("div", card.value, class_="value"),
        *([verdict] if card.verdict else []),
        element("div", card.context, class_="context"),
        class_="card",
    )
