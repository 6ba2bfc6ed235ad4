"""The numbers of a section: what is measured, its title, which end is better, and what it means."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from scipy.stats import binomtest

from offmap.metrics import detection_summary
from offmap.report.model import Section, SummaryTable
from offmap.verdict import Verdict


class Measure(NamedTuple):
    """The title of a metric, what it means, and which end of it is better where one is."""

    title: str
    meaning: str
    better: Literal["higher", "lower"] | None = None


MEASURES: Mapping[str, Measure] = {
    "auroc": Measure("AUROC", "Chance that a novel row scores above a normal one; 0.5 is guessing.", "higher"),
    "aupr_out": Measure("AUPR, novel", "Mean precision of finding novel rows; depends on their share.", "higher"),
    "aupr_in": Measure("AUPR, normal", "Mean precision of finding normal rows; depends on their share.", "higher"),
    "fpr95_novel": Measure("FPR95", "Share of normal rows flagged when 95% of the novel rows are found.", "lower"),
    "fpr95_normal": Measure(
        "FPR95, normal positive", "Share of novel rows accepted when 95% of the normal rows are.", "lower"
    ),
    "promised_rate": Measure("promised rate", "The false-alarm rate that the model promises."),
    "false_alarm_rate": Measure("false alarms", "Share of normal test rows that were flagged."),
    "recall": Measure("recall", "Share of novel test rows that were flagged.", "higher"),
    "flagged_rate": Measure("flagged", "Share of scored rows that were flagged."),
    "known_accuracy": Measure("known accuracy", "Share of known rows whose closest class is right.", "higher"),
    "open_accuracy": Measure(
        "open-set accuracy", "Share of all rows labelled right, unknown being one more class.", "higher"
    ),
    "open_f1": Measure("open-set F1", "Mean F1 over the known classes and the unknown class.", "higher"),
}


def title_of(metric: str) -> str:
    """How a metric is headed on the page; a metric of the caller's own keeps its name."""
    return MEASURES[metric].title if metric in MEASURES else metric


def measure(normal: Verdict, novel: Verdict | None, promised_rate: float | None) -> dict[str, float]:
    """Measures a model by what it says of normal and of novel rows; without novel rows, only what it flags.

    Args:
        normal: The verdict on normal rows, or on all rows if the truth is unknown.
        novel: The verdict on novel rows; None if the truth is unknown.
        promised_rate: The false-alarm rate that the model promises, if it promises one.

    Example:
        >>> import numpy as np
        >>> normal = Verdict(novelty=np.array([1.0, 2.0]), novel=np.array([False, False]))
        >>> novel = Verdict(novelty=np.array([2.0, 3.0]), novel=np.array([False, True]))
        >>> measure(normal, novel, promised_rate=0.05)["recall"]
        0.5
    """
    flagged = float(normal.novel.mean())
    promise = {} if promised_rate is None else {"promised_rate": promised_rate}
    if novel is None:
        return {"flagged_rate": flagged, **promise}
    return {
        **detection_summary(normal.novelty, novel.novelty),
        **promise,
        "false_alarm_rate": flagged,
        "recall": float(novel.novel.mean()),
    }


def compare(sections: Sequence[Section], title: str = "Methods compared") -> SummaryTable:
    """Lays the metrics of several sections side by side.

    Example:
        >>> import numpy as np
        >>> sections = [Section(name=name, normal_novelty=np.ones(1), threshold=2.0, metrics={"auroc": area})
        ...             for name, area in {"near": 0.7, "far": 0.9}.items()]
        >>> compare(sections).rows
        {'near': [0.7], 'far': [0.9]}
    """
    columns = list(dict.fromkeys(name for section in sections for name in section.metrics))
    better = {name: MEASURES[name].better for name in columns if name in MEASURES}
    return SummaryTable(
        title=title,
        columns=[title_of(name) for name in columns],
        rows={section.name: [section.metrics.get(name) for name in columns] for section in sections},
        better={title_of(name): end for name, end in better.items() if end is not None},
    )


def rate_interval(flagged: int, rows: int) -> tuple[float, float]:
    """The 95 % confidence interval (Clopper and Pearson's) of the rate behind ``flagged`` of ``rows``.

    Example:
        >>> low, high = rate_interval(5, 100)
        >>> round(low, 3), round(high, 3)
        (0.016, 0.113)
    """
    interval = binomtest(flagged, rows).proportion_ci(method="exact")
    return float(interval.low), float(interval.high)
