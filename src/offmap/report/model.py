"""What a report says, before any of it is drawn: reports, sections, examples and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Shown = Any
Kind = Literal["images", "texts", "features", "table"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Examples:
    """Rows worth a look, with what the method said of each.

    Args:
        title: What these rows have in common.
        rows: Images ``(n, h, w)`` or ``(n, h, w, c)``, texts, features ``(n, d)``, or an array of objects of that
            shape, the cells of a table.
        index: A name or number for each row.
        novelty: Novelty of each row.
        p_value: Conformal p-value of each row.
        flagged: Whether each row is flagged; by default if its novelty lies above the section's threshold.
        truth: True label of each row, where known.
        entity: The entity of each row, for models that know entities.
        identity: What tells the rows apart, such as an id: name → one value per row.
        predicted: What the method called each row.
        reasons: Why each row is novel, in words.
        feature_names: Names of the ``d`` features.
        normal_mean: Mean of each feature over normal rows; with ``normal_sd`` it shows which features deviate.
        normal_sd: Standard deviation of each feature over normal rows.
    """

    title: str
    rows: Shown
    index: Sequence[int | str]
    novelty: FloatArray
    p_value: FloatArray | None = None
    flagged: BoolArray | None = None
    truth: Sequence[object] | None = None
    entity: Sequence[object] | NDArray[Any] | None = None
    identity: Mapping[str, Sequence[object]] = field(default_factory=dict)
    predicted: Sequence[object] | None = None
    reasons: Sequence[str] | None = None
    feature_names: Sequence[str] | None = None
    normal_mean: FloatArray | None = None
    normal_sd: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in ("index", "novelty", "p_value", "flagged", "truth", "entity", "predicted", "reasons"):
            _require_length(name, getattr(self, name), len(self.rows), "one entry per row")
        for name, values in self.identity.items():
            _require_length(f"identity[{name!r}]", values, len(self.rows), "one entry per row")
        if self.kind == "features":
            for name in ("feature_names", "normal_mean", "normal_sd"):
                _require_length(name, getattr(self, name), np.shape(self.rows)[1], "one entry per feature")

    @property
    def kind(self) -> Kind:
        """Whether the rows are images, texts, features or the cells of a table."""
        return kind_of(self.rows)

    def flags(self, threshold: float) -> BoolArray:
        """Whether each row is flagged, by ``threshold`` where nothing else was decided."""
        return decided(self.flagged, self.novelty, threshold)


@dataclass(frozen=True, kw_only=True, eq=False)
class Section:
    """One fitted method and how it did.

    Args:
        name: Name of the method.
        normal_novelty: Novelty of the normal test rows; of all scored rows when the truth is unknown.
        novel_novelty: Novelty of the novel test rows; ``None`` or empty when the truth is unknown.
        calibration_novelty: Novelty of the held-out rows that set the threshold.
        threshold: Rows of a novelty above it are flagged, unless decisions are given.
        normal_flagged: Whether each normal test row is flagged; by default if it lies above the threshold.
        novel_flagged: The same for the novel test rows.
        by_class: Whether p-values by class decide, instead of the threshold.
        alpha: The false-alarm rate that is promised, if one is.
        description: One sentence on the method.
        parameters: The method's parameters.
        history: Term of the objective → its value in each epoch.
        metrics: Name → value.
        examples: Rows worth a look.
    """

    name: str
    normal_novelty: FloatArray
    novel_novelty: FloatArray | None = None
    calibration_novelty: FloatArray | None = None
    threshold: float
    normal_flagged: BoolArray | None = None
    novel_flagged: BoolArray | None = None
    by_class: bool = False
    alpha: float | None = None
    description: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    history: Mapping[str, Sequence[float]] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    examples: Sequence[Examples] = ()

    def __post_init__(self) -> None:
        if len(self.normal_novelty) == 0:
            raise ValueError("normal_novelty must hold at least one row, got none")
        for name in ("normal_novelty", "novel_novelty", "calibration_novelty"):
            _require_scores(name, getattr(self, name))
        for name, rows in (("normal_flagged", self.normal_novelty), ("novel_flagged", self.novel)):
            _require_length(name, getattr(self, name), len(rows), "one entry per row")

    @property
    def novel(self) -> FloatArray:
        """Novelty of the novel rows: empty when the truth is unknown."""
        return np.empty(0) if self.novel_novelty is None else self.novel_novelty

    @property
    def normal_flags(self) -> BoolArray:
        """Whether each normal row is flagged; a row at the threshold is not."""
        return decided(self.normal_flagged, self.normal_novelty, self.threshold)

    @property
    def novel_flags(self) -> BoolArray:
        """Whether each novel row is flagged."""
        return decided(self.novel_flagged, self.novel, self.threshold)

    @property
    def truth_is_known(self) -> bool:
        """Whether the scored rows are known to be normal or novel."""
        return len(self.novel) > 0


@dataclass(frozen=True, kw_only=True)
class SummaryTable:
    """A table that compares methods.

    Args:
        title: Its heading.
        columns: Names of the metrics.
        rows: Method → its value in each column; ``None`` where there is none.
        better: Column → which end is better; its best value is marked.
        note: One sentence under the table.
    """

    title: str
    columns: Sequence[str]
    rows: Mapping[str, Sequence[float | None]]
    better: Mapping[str, Literal["higher", "lower"]] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        for method, values in self.rows.items():
            _require_length(f"rows[{method!r}]", values, len(self.columns), "one value per column")


@dataclass(frozen=True, kw_only=True)
class Report:
    """One run: its headline, a section per method, and tables that compare them.

    Args:
        title: The headline.
        summary: A sentence or two on what was done.
        sections: One per fitted method.
        tables: Comparisons, shown before the sections.
        facts: Further facts of the run, such as the data set, the seed or the versions.
    """

    title: str
    summary: str = ""
    sections: Sequence[Section] = ()
    tables: Sequence[SummaryTable] = ()
    facts: Mapping[str, object] = field(default_factory=dict)


def decided(flagged: BoolArray | None, novelty: FloatArray, threshold: float) -> BoolArray:
    """The decisions that were given or, without any, those by the threshold."""
    return novelty > threshold if flagged is None else flagged


def kind_of(rows: Shown) -> Kind:
    """Whether rows are images, texts, features or the cells of a table.

    Example:
        >>> kind_of(np.zeros((5, 8, 8))), kind_of(["a word"]), kind_of(np.zeros((5, 2)))
        ('images', 'texts', 'features')
    """
    array = np.asarray(rows)
    if array.ndim == 1 and all(isinstance(row, str) for row in rows):
        return "texts"
    if array.ndim == 2:
        return "table" if array.dtype == object else "features"
    if array.ndim == 3 or (array.ndim == 4 and array.shape[3] in (1, 3, 4)):
        return "images"
    raise ValueError(f"rows must be images (n, h, w[, c]), features (n, d) or texts, got an array of {array.shape}")


def _require_length(name: str, values: Any, expected: int, meaning: str) -> None:
    if values is not None and len(values) != expected:
        raise ValueError(f"{name} must have {meaning} ({expected}), got {len(values)}")


def _require_scores(name: str, values: FloatArray | None) -> None:
    if values is None:
        return
    if np.ndim(values) != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {np.shape(values)}")
    if np.isnan(values).any():
        raise ValueError(f"{name} must not hold NaN, got {int(np.isnan(values).sum())}")
