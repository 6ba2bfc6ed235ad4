"""The numbers of a section: what is measured, which end is better, and what each number means."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import binomtest

from offmap.metrics import aupr_in, aupr_out, auroc, fpr95
from offmap.report.model import FloatArray, Section, SummaryTable

AUROC = "AUROC"
FPR95 = "FPR95, novel positive"
PROMISED = "false-alarm rate, promised"
FALSE_ALARMS = "false-alarm rate, measured"
RECALL = "recall of novel rows"
FLAGGED = "share of rows flagged"


class Measure(NamedTuple):
    """What a metric means, and which end of it is better where one is."""

    meaning: str
    better: Literal["higher", "lower"] | None = None


MEASURES: Mapping[str, Measure] = {
    AUROC: Measure("Chance that a novel row scores above a normal one; 0.5 is guessing.", "higher"),
    "AUPR, novel positive": Measure("Mean precision of finding novel rows; depends on their share.", "higher"),
    "AUPR, normal positive": Measure("Mean precision of finding normal rows; depends on their share.", "higher"),
    FPR95: Measure("Share of normal rows flagged when 95% of the novel rows are found.", "lower"),
    "FPR95, normal positive": Measure("Share of novel rows passed when 95% of the normal rows pass.", "lower"),
    PROMISED: Measure("The rate that the threshold was set for."),
    FALSE_ALARMS: Measure("Share of normal test rows above the threshold."),
    RECALL: Measure("Share of novel test rows above the threshold.", "higher"),
    FLAGGED: Measure("Share of scored rows above the threshold."),
}


def measure(normal: FloatArray, novel: FloatArray, threshold: float, alpha: float | None) -> dict[str, float]:
    """Measures a method from the novelty that it gives; without novel rows, only what it flags.

    Args:
        normal: Novelty of the normal rows, or of all rows if the truth is unknown.
        novel: Novelty of the novel rows; empty if the truth is unknown.
        threshold: Rows above it are flagged.
        alpha: The false-alarm rate that the threshold promises, if it promises one.

    Example:
        >>> measure(np.array([1.0, 2.0]), np.array([2.0, 3.0]), threshold=2.5, alpha=0.05)[RECALL]
        0.5
    """
    flagged = float(np.mean(normal > threshold))
    promise = {} if alpha is None else {PROMISED: alpha}
    if len(novel) == 0:
        return {FLAGGED: flagged, **promise}
    return {
        AUROC: auroc(normal, novel),
        FPR95: fpr95(normal, novel, positive="novel"),
        "FPR95, normal positive": fpr95(normal, novel, positive="normal"),
        "AUPR, novel positive": aupr_out(normal, novel),
        "AUPR, normal positive": aupr_in(normal, novel),
        **promise,
        FALSE_ALARMS: flagged,
        RECALL: float(np.mean(novel > threshold)),
    }


def compare(sections: Sequence[Section], title: str = "Methods compared") -> SummaryTable:
    """Lays the metrics of several sections side by side.

    Example:
        >>> sections = [Section(name=name, normal_novelty=np.ones(1), threshold=2.0, metrics={AUROC: area})
        ...             for name, area in {"near": 0.7, "far": 0.9}.items()]
        >>> compare(sections).rows
        {'near': [0.7], 'far': [0.9]}
    """
    columns = list(dict.fromkeys(name for section in sections for name in section.metrics))
    better = {name: MEASURES[name].better for name in columns if name in MEASURES}
    return SummaryTable(
        title=title,
        columns=columns,
        rows={section.name: [section.metrics.get(name) for name in columns] for section in sections},
        better={name: end for name, end in better.items() if end is not None},
    )


def rate_interval(novelty: FloatArray, threshold: float) -> tuple[float, float]:
    """The 95 % confidence interval (Clopper and Pearson's) of the share of rows above the threshold.

    Example:
        >>> low, high = rate_interval(np.arange(100.0), threshold=94.5)
        >>> round(low, 3), round(high, 3)
        (0.016, 0.113)
    """
    interval = binomtest(int((novelty > threshold).sum()), len(novelty)).proportion_ci(method="exact")
    return float(interval.low), float(interval.high)
