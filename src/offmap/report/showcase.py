"""Which rows of a run to show: the most novel ones and the worst mistakes."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from offmap.calibration import p_values
from offmap.report.model import Examples, FloatArray, Shown, kind_of


class Calibrated(Protocol):
    """What a section says of any fitted estimator."""

    threshold_: float
    calibration_novelty_: FloatArray
    history_: dict[str, list[float]]

    @property
    def promised_rate(self) -> float | None:
        """The false-alarm rate that the threshold keeps, if it keeps one."""

    def get_params(self, deep: bool = ...) -> dict[str, Any]:
        """The parameters."""


class Fitted(Calibrated, Protocol):
    """What examples are chosen by; every ``Detector`` and ``OpenSetClassifier`` has it once fitted."""

    def novelty(self, X: Any) -> FloatArray:
        """Novelty of each row."""

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row, or the verdict on it."""


class Group(NamedTuple):
    """Scored rows that are all normal, all novel, or of unknown truth."""

    name: str
    X: Any
    labels: Sequence[object] | None
    shown: Shown
    novelty: FloatArray


class Place(NamedTuple):
    """Where a row is: the number of its group and its position there."""

    group: int
    row: int


class Showcase:
    """Picks examples from a group of rows, or from a normal group and a novel one.

    Args:
        estimator: The fitted estimator that scored the rows.
        groups: One group if the truth is unknown; else the normal rows, then the novel rows.
        feature_names: Names of the features of tabular rows.
        known_normal: Rows whose mean and spread show which features of a row deviate.
    """

    def __init__(
        self, estimator: Fitted, groups: Sequence[Group], feature_names: Sequence[str] | None, known_normal: Any
    ) -> None:
        self._estimator = estimator
        self._groups = groups
        self._feature_names = feature_names
        self._known_normal = known_normal

    def examples(self, count: int) -> Iterator[Examples]:
        """Up to ``count`` rows of each kind; a kind without rows is left out."""
        places = [Place(number, row) for number, group in enumerate(self._groups) for row in range(len(group.novelty))]
        novelty = np.concatenate([group.novelty for group in self._groups])
        ranked = np.argsort(-novelty, kind="stable")
        is_novel, flagged = ranked >= len(self._groups[0].novelty), novelty[ranked] > self._estimator.threshold_
        kinds = {"Most novel rows": ranked}
        if len(self._groups) == 2:
            kinds["False alarms: the normal rows that look most novel"] = ranked[~is_novel & flagged]
            kinds["Missed: the novel rows that look most normal"] = ranked[is_novel & ~flagged][::-1]
        for title, chosen in kinds.items():
            if len(chosen):
                yield self._examples(title, [places[position] for position in chosen[:count]])

    def _examples(self, title: str, places: Sequence[Place]) -> Examples:
        contents = [self._groups[group].shown[row] for group, row in places]
        rows: Shown = contents if isinstance(contents[0], str) else np.stack(contents)
        novelty = np.array([self._groups[group].novelty[row] for group, row in places])
        calibration = self._estimator.calibration_novelty_
        return Examples(
            title=title,
            rows=rows,
            index=[f"{self._groups[group].name} {row}" if len(self._groups) > 1 else row for group, row in places],
            novelty=novelty,
            p_value=p_values(calibration, novelty) if len(calibration) else None,
            truth=self._truth(places),
            predicted=self._predicted(places),
            **(self._features() if kind_of(rows) == "features" else {}),
        )

    def _truth(self, places: Sequence[Place]) -> list[object] | None:
        if len(self._groups) == 1 and self._groups[0].labels is None:
            return None
        found = [(self._groups[group], row) for group, row in places]
        return [group.name if group.labels is None else group.labels[row] for group, row in found]

    def _predicted(self, places: Sequence[Place]) -> list[object] | None:
        """The labels that a classifier gives; a detector has said all with its novelty."""
        if not hasattr(self._estimator, "classes_"):
            return None
        labels: dict[Place, object] = {}
        for number, group in enumerate(self._groups):
            here = [place for place in places if place.group == number]
            if here:
                answers = self._estimator.predict(_take(group.X, [place.row for place in here]))
                labels |= dict(zip(here, answers, strict=True))
        unknown = getattr(self._estimator, "unknown_label_", None)
        return ["unknown" if labels[place] == unknown else labels[place] for place in places]

    def _features(self) -> dict[str, Any]:
        names = self._feature_names
        if names is None:
            names = getattr(self._groups[0].X, "columns", None)
        named = {} if names is None else {"feature_names": [str(name) for name in names]}
        if self._known_normal is None:
            return named
        values = np.asarray(self._known_normal, dtype=np.float64)
        return named | {"normal_mean": values.mean(axis=0), "normal_sd": values.std(axis=0)}


def _take(X: Any, rows: Sequence[int]) -> Any:
    """Some rows of an array, or of a data frame, which stays one: the estimator knows its columns by name."""
    return X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]
