"""From a fitted model and assessed rows to a section of the report."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from offmap.arrays import FloatArray
from offmap.report.measures import measure
from offmap.report.model import Section, Shown
from offmap.report.showcase import Group, Showcase
from offmap.verdict import Verdict


class Fitted(Protocol):
    """What a section says of any fitted model."""

    @property
    def threshold_(self) -> float:
        """The novelty above which a row is flagged."""

    @property
    def calibration_novelty_(self) -> FloatArray:
        """Novelty of the held-out rows."""

    @property
    def promised_rate(self) -> float | None:
        """The false-alarm rate that the threshold keeps, if it keeps one."""

    def assess(self, X: Any) -> Verdict:
        """Everything the model says of each row."""

    def get_params(self, deep: bool = ...) -> dict[str, Any]:
        """The parameters."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows with what the model said of them.

    Args:
        verdict: The model's assessment of each row.
        shown: What the reader sees: feature rows, images or texts.
        labels: True label of each row, where known.
        reasons: Says in words why rows are novel, given their positions; asked for the rows that are shown.
        identity: A data frame of what tells the rows apart, such as ids.
    """

    verdict: Verdict
    shown: Any
    labels: Collection[Any] | None = None
    reasons: Callable[[Sequence[int]], Sequence[str]] | None = None
    identity: Any = None

    def __post_init__(self) -> None:
        for name, values in (("shown", self.shown), ("labels", self.labels), ("identity", self.identity)):
            if values is not None and len(values) != len(self.verdict):
                raise ValueError(f"{name} must have one entry per row ({len(self.verdict)}), got {len(values)}")

    @classmethod
    def assessed(cls, model: Fitted, X: Any, labels: Collection[Any] | None = None, shown: Any = None) -> Self:
        """Lets ``model`` assess the rows ``X``, each once; readers see ``shown``, by default ``X`` itself."""
        return cls(model.assess(X), X if shown is None else shown, labels)


def section_of(
    model: Fitted,
    normal: Sample,
    novel: Sample | None = None,
    *,
    name: str | None = None,
    metrics: Mapping[str, float] | None = None,
    feature_names: Sequence[str] | None = None,
    reference: Any = None,
    shown: int = 12,
) -> Section:
    """Makes the section that reports on a fitted model from rows that it assessed.

    Args:
        model: A fitted model.
        normal: Normal test rows; all rows if the truth is unknown.
        novel: Novel test rows; None or without rows if the truth is unknown.
        name: Name of the section; by default the name of the model's class.
        metrics: Further metrics, beside those of detection.
        feature_names: Names of the features of tabular rows; by default the columns of a data frame.
        reference: Normal rows to compare features with; by default the normal test rows.
        shown: How many rows to show of each kind.

    Example:
        >>> from offmap.density import VAEDetector
        >>> rows = np.random.default_rng(0).normal(size=(300, 2))
        >>> detector = VAEDetector(epochs=1, random_state=0).fit(rows[:200])
        >>> normal, novel = Sample.assessed(detector, rows[200:]), Sample.assessed(detector, rows[:50] + 9)
        >>> section = section_of(detector, normal, novel, shown=3)
        >>> section.name, section.alpha, [len(examples.rows) for examples in section.examples][0]
        ('VAEDetector', 0.05, 3)
    """
    known = novel if novel is not None and len(novel.verdict) > 0 else None
    image_shape = model.get_params(deep=False).get("image_shape")
    groups = [_group("normal" if known else "scored", normal, image_shape)]
    groups += [_group("novel", known, image_shape)] if known else []
    known_normal = normal.shown if reference is None and known else reference
    promised = model.promised_rate
    return Section(
        name=name or type(model).__name__,
        description=(inspect.getdoc(type(model)) or "").partition("\n")[0],
        parameters=model.get_params(deep=False),
        normal_novelty=normal.verdict.novelty,
        novel_novelty=known.verdict.novelty if known else np.empty(0),
        calibration_novelty=model.calibration_novelty_,
        threshold=float(model.threshold_),
        normal_flagged=normal.verdict.novel,
        novel_flagged=known.verdict.novel if known else None,
        by_class=getattr(model, "class_promise_", None) is not None,
        alpha=promised,
        history=getattr(model, "history_", {}),
        metrics=measure(normal.verdict, known.verdict if known else None, promised) | dict(metrics or {}),
        examples=list(Showcase(groups, feature_names, known_normal).examples(shown)),
    )


def _group(name: str, sample: Sample, image_shape: Sequence[int] | None) -> Group:
    labels = None if sample.labels is None else list(sample.labels)
    shown = _shown(sample.shown, image_shape)
    return Group(name, sample.verdict, labels, shown, sample.reasons, sample.identity)


def _shown(rows: Any, image_shape: Sequence[int] | None) -> Shown:
    """Rows as they are drawn: flat images get their shape back; a data frame keeps its columns."""
    if image_shape is not None and np.ndim(rows) == 2:
        return np.asarray(rows).reshape(len(rows), *image_shape)
    return rows if hasattr(rows, "columns") or isinstance(rows, np.ndarray) else list(rows)
