"""Which rows of a run to show: the most novel ones and the worst mistakes."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from offmap.report.model import Examples, Kind, Shown, kind_of
from offmap.verdict import Verdict


class Group(NamedTuple):
    """Assessed rows that are all normal, all novel, or of unknown truth."""

    name: str
    verdict: Verdict
    labels: Sequence[object] | None
    shown: Shown
    reasons: Callable[[Sequence[int]], Sequence[str]] | None = None
    identity: Any = None


class Place(NamedTuple):
    """Where a row is: the number of its group and its position there."""

    group: int
    row: int


class Showcase:
    """Picks examples from a group of rows, or from a normal group and a novel one.

    Args:
        groups: One group if the truth is unknown; else the normal rows, then the novel rows.
        feature_names: Names of the features of tabular rows.
        known_normal: Rows whose mean and spread show which features of a row deviate.
    """

    def __init__(self, groups: Sequence[Group], feature_names: Sequence[str] | None, known_normal: Any) -> None:
        self._groups = groups
        self._feature_names = feature_names
        self._known_normal = known_normal

    def examples(self, count: int) -> Iterator[Examples]:
        """Up to ``count`` rows of each kind; a kind without rows is left out."""
        places = [Place(number, row) for number, group in enumerate(self._groups) for row in range(len(group.verdict))]
        novelty = np.concatenate([group.verdict.novelty for group in self._groups])
        ranked = np.argsort(-novelty, kind="stable")
        flagged = np.concatenate([group.verdict.novel for group in self._groups])[ranked]
        is_novel = ranked >= len(self._groups[0].verdict)
        kinds = {"Most novel rows": ranked}
        if len(self._groups) == 2:
            kinds["False alarms: the normal rows that look most novel"] = ranked[~is_novel & flagged]
            kinds["Missed: the novel rows that look most normal"] = ranked[is_novel & ~flagged][::-1]
        for title, chosen in kinds.items():
            if len(chosen):
                yield self._examples(title, [places[position] for position in chosen[:count]])

    def _examples(self, title: str, places: Sequence[Place]) -> Examples:
        contents = [_row(self._groups[group].shown, row) for group, row in places]
        rows: Shown = contents if isinstance(contents[0], str) else np.stack(contents)
        return Examples(
            title=title,
            rows=rows,
            index=[f"{self._groups[group].name} {row}" if len(self._groups) > 1 else row for group, row in places],
            novelty=self._collected("novelty", places),
            p_value=self._collected("p_value", places),
            flagged=self._collected("novel", places),
            truth=self._truth(places),
            entity=self._collected("entity", places),
            identity=self._identity(places),
            predicted=self._predicted(places),
            reasons=self._reasons(places),
            **self._features(kind_of(rows)),
        )

    def _identity(self, places: Sequence[Place]) -> dict[str, list[object]]:
        """What tells the rows apart, where every group says it."""
        if any(group.identity is None for group in self._groups):
            return {}
        rows = [self._groups[group].identity.iloc[row] for group, row in places]
        names = [name for name in rows[0].index if all(name in row.index for row in rows)]
        return {str(name): [row[name] for row in rows] for name in names}

    def _truth(self, places: Sequence[Place]) -> list[object] | None:
        if len(self._groups) == 1 and self._groups[0].labels is None:
            return None
        found = [(self._groups[group], row) for group, row in places]
        return [group.name if group.labels is None else group.labels[row] for group, row in found]

    def _reasons(self, places: Sequence[Place]) -> list[str] | None:
        """Why each row is novel, asked once per group; None unless every group can say."""
        found: dict[Place, str] = {}
        for number, group in enumerate(self._groups):
            own = [place for place in places if place.group == number]
            if own and group.reasons is None:
                return None
            if own and group.reasons is not None:
                found |= dict(zip(own, group.reasons([place.row for place in own]), strict=True))
        return [found[place] for place in places]

    def _predicted(self, places: Sequence[Place]) -> list[object] | None:
        """The labels that a classifier gives; a detector has said all with its novelty."""
        labels, novel = self._collected("label", places), self._collected("novel", places)
        return None if labels is None else ["unknown" if n else label for label, n in zip(labels, novel, strict=True)]

    def _collected(self, field: str, places: Sequence[Place]) -> NDArray[Any] | Any:
        """One field of the verdicts at ``places``; None where the model does not have it."""
        values = [getattr(group.verdict, field) for group in self._groups]
        return None if values[0] is None else np.array([values[group][row] for group, row in places])

    def _features(self, kind: Kind) -> dict[str, Any]:
        if kind not in ("features", "table"):
            return {}
        names = self._feature_names
        if names is None:
            names = getattr(self._groups[0].shown, "columns", None)
        named = {} if names is None else {"feature_names": [str(name) for name in names]}
        if self._known_normal is None or kind == "table":
            return named
        values = np.asarray(self._known_normal, dtype=np.float64)
        return named | {"normal_mean": values.mean(axis=0), "normal_sd": values.std(axis=0)}


def _row(shown: Shown, row: int) -> Any:
    return shown.iloc[row].to_numpy() if hasattr(shown, "iloc") else shown[row]
