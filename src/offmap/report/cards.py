"""The figures that a reader wants first, in large type."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from offmap.report.markup import Markup, element, percent
from offmap.report.measures import AUROC, FALSE_ALARMS, FLAGGED, FPR95, RECALL, rate_interval
from offmap.report.model import Section


@dataclass(frozen=True, kw_only=True)
class Card:
    """One number in large type.

    Args:
        label: What it is.
        value: The number.
        context: What to hold it against.
        verdict: Whether that is good, in a few words.
        kept: Whether the verdict is a good one.
    """

    label: str
    value: str
    context: str
    verdict: str = ""
    kept: bool = True


def cards(section: Section) -> Markup:
    """The headline numbers of a section, side by side."""
    return element("ul", *map(_drawn, _chosen(section)), class_="cards")


def best_of(sections: Sequence[Section]) -> Section | None:
    """The section of the highest AUROC, if any has one."""
    measured = [section for section in sections if AUROC in section.metrics]
    return max(measured, key=lambda section: section.metrics[AUROC], default=None)


def _chosen(section: Section) -> Iterator[Card]:
    metrics = section.metrics
    if AUROC in metrics:
        yield Card(label="AUROC", value=f"{metrics[AUROC]:.3f}", context="1 is perfect, 0.5 is guessing")
    if FALSE_ALARMS in metrics:
        yield _false_alarms(section, metrics[FALSE_ALARMS])
    if RECALL in metrics:
        context = f"of {len(section.novel):,} novel rows lie above the threshold"
        yield Card(label="Novel rows found", value=percent(metrics[RECALL]), context=context)
    if FPR95 in metrics:
        context = "of normal rows flagged to find 95% of the novel (novel positive)"
        yield Card(label="FPR95", value=percent(metrics[FPR95]), context=context)
    if FLAGGED in metrics:
        yield from _unlabelled(section, metrics[FLAGGED])


def _false_alarms(section: Section, rate: float) -> Card:
    low, high = rate_interval(section.normal_novelty, section.threshold)
    context = f"95% interval {percent(low)} to {percent(high)}"
    if section.alpha is None:
        return Card(label="False alarms", value=percent(rate), context=context, verdict="no rate was promised")
    kept = low <= section.alpha
    relation = "within" if rate <= section.alpha else "consistent with" if kept else "above"
    verdict = f"{relation} the promised {percent(section.alpha)}"
    return Card(label="False alarms", value=percent(rate), context=context, verdict=verdict, kept=kept)


def _unlabelled(section: Section, rate: float) -> Iterator[Card]:
    rows = len(section.normal_novelty)
    yield Card(label="Rows scored", value=f"{rows:,}", context="of unknown truth")
    flagged = int((section.normal_novelty > section.threshold).sum())
    yield Card(label="Rows flagged", value=f"{flagged:,}", context=f"{percent(rate)} of the rows")
    if section.alpha is not None:
        context = f"rows flagged if all were normal ({percent(section.alpha)})"
        yield Card(label="Expected by chance", value=f"{section.alpha * rows:,.0f}", context=context)


def _drawn(card: Card) -> Markup:
    verdict = element("div", card.verdict, class_=f"verdict {'good' if card.kept else 'bad'}")
    return element(
        "li",
        element("div", card.label, class_="label"),
        element("div", card.value, class_="value"),
        *([verdict] if card.verdict else []),
        element("div", card.context, class_="context"),
        class_="card",
    )
