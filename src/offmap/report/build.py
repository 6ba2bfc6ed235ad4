"""From a fitted estimator and some rows to a section of the report."""

import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from offmap.calibration import FloatArray
from offmap.report.measures import measure
from offmap.report.model import Examples, Section, Shown
from offmap.report.showcase import Calibrated, Fitted, Group, Showcase


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to score.

    Args:
        X: What the estimator reads.
        labels: True label of each row, where known.
        shown: What the reader sees in place of ``X``, such as texts or images; by default ``X`` itself.
    """

    X: Any
    labels: Collection[Any] | None = None
    shown: Shown | None = None

    def __post_init__(self) -> None:
        for name in ("labels", "shown"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.X):
                raise ValueError(f"{name} must have one entry per row of X ({len(self.X)}), got {len(values)}")


def section_from(
    estimator: Fitted,
    normal: Sample,
    novel: Sample | None = None,
    *,
    name: str | None = None,
    metrics: Mapping[str, float] | None = None,
    feature_names: Sequence[str] | None = None,
    reference: Any = None,
    shown: int = 12,
) -> Section:
    """Scores rows with a fitted estimator, each once, and makes the section that reports on it.

    Args:
        estimator: A fitted ``Detector`` or ``OpenSetClassifier``.
        normal: Normal test rows; all scored rows if the truth is unknown.
        novel: Novel test rows; ``None`` or without rows if the truth is unknown.
        name: Name of the section; by default the name of the estimator's class.
        metrics: Further metrics, beside those of detection.
        feature_names: Names of the features of tabular rows; by default the columns of a data frame.
        reference: Normal rows to see deviating features against; by default the normal test rows.
        shown: How many rows to show of each kind.

    Example:
        >>> from offmap.density import VAEDetector
        >>> rows = np.random.default_rng(0).normal(size=(300, 2))
        >>> detector = VAEDetector(epochs=1, random_state=0).fit(rows[:200])
        >>> section = section_from(detector, Sample(rows[200:]), Sample(rows[:50] + 9), shown=3)
        >>> section.name, section.alpha, [len(examples.rows) for examples in section.examples][0]
        ('VAEDetector', 0.05, 3)
    """
    truth_is_known = novel is not None and len(novel.X) > 0
    samples = {"normal": normal, "novel": novel} if truth_is_known else {"scored": normal}
    groups = [_scored(estimator, name, sample) for name, sample in samples.items() if sample is not None]
    known_normal = normal.X if reference is None and truth_is_known else reference
    return section_of(
        estimator,
        groups[0].novelty,
        groups[1].novelty if truth_is_known else np.empty(0),
        name=name,
        metrics=metrics,
        examples=list(Showcase(estimator, groups, feature_names, known_normal).examples(shown)),
    )


def section_of(
    estimator: Calibrated,
    normal: FloatArray,
    novel: FloatArray,
    *,
    name: str | None = None,
    metrics: Mapping[str, float] | None = None,
    examples: Sequence[Examples] = (),
) -> Section:
    """Makes the section of a fitted estimator from scores on the scale of its threshold.

    Args:
        estimator: What scored the rows.
        normal: Novelty of normal rows.
        novel: Novelty of novel rows; empty if the truth is unknown.
        name: Name of the section; by default the name of the estimator's class.
        metrics: Further metrics, beside those of detection.
        examples: Rows to show.
    """
    alpha = estimator.promised_rate
    return Section(
        name=name or type(estimator).__name__,
        description=(inspect.getdoc(type(estimator)) or "").partition("\n")[0],
        parameters=estimator.get_params(deep=False),
        normal_novelty=normal,
        novel_novelty=novel,
        calibration_novelty=estimator.calibration_novelty_,
        threshold=float(estimator.threshold_),
        alpha=alpha,
        history=estimator.history_,
        metrics=measure(normal, novel, estimator.threshold_, alpha) | dict(metrics or {}),
        examples=list(examples),
    )


def _scored(estimator: Fitted, name: str, sample: Sample) -> Group:
    novelty = np.asarray(estimator.novelty(sample.X), dtype=np.float64)
    labels = None if sample.labels is None else list(sample.labels)
    return Group(name=name, X=sample.X, labels=labels, shown=_shown(sample, estimator), novelty=novelty)


def _shown(sample: Sample, estimator: Fitted) -> Shown:
    if sample.shown is not None:
        return sample.shown if isinstance(sample.shown, np.ndarray) else list(sample.shown)
    rows, image_shape = np.asarray(sample.X), estimator.get_params(deep=False).get("image_shape")
    return rows if image_shape is None or rows.ndim != 2 else rows.reshape(len(rows), *image_shape)
