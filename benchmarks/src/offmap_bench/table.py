"""A table of a paper: its methods, settings, seeds and metrics, and the numbers that the paper prints."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from sklearn.base import clone

Measure = Callable[[Any, str, int], Mapping[str, float]]


def slug(text: str) -> str:
    """Turns a label into lower-case words joined by hyphens, for use in a file name.

    Example:
        >>> slug("Fashion-MNIST → MNIST")
        'fashion-mnist-mnist'
    """
    return re.sub(r"\W+", "-", unicodedata.normalize("NFKC", text).casefold()).strip("-")


def settings_of(method: Any) -> dict[str, Any]:
    """Returns the settings of a method: an estimator's parameters, a mapping's items or a dataclass's fields."""
    if isinstance(method, Mapping):
        return dict(method)
    if isinstance(method, type):
        return {}
    if hasattr(method, "get_params"):
        return dict(method.get_params())
    return {item.name: getattr(method, item.name) for item in fields(method)} if is_dataclass(method) else {}


def require_known(argument: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raises a ``ValueError`` for the first of ``names`` that is not ``known``."""
    for name in names:
        if name not in known:
            raise ValueError(f"{argument} must be among {', '.join(map(repr, known))}; got {name!r}")


def require_distinct(argument: str, labels: Sequence[str], names: Sequence[str]) -> None:
    """Raises a ``ValueError`` if there are no labels, or if their file names are empty or clash."""
    clashing = [label for label, name in zip(labels, names, strict=True) if not name or names.count(name) > 1]
    if clashing or not labels:
        raise ValueError(f"{argument} must hold one or more labels, each with a different file name; got {clashing}")


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of a paper: what to run, and the numbers to compare with.

    Args:
        name: Name on the command line.
        source: The paper and the number of the table.
        caption: What the table shows.
        rows: The methods by label: unfitted estimators, or any value that ``measure`` accepts.
        columns: Labels of the settings in which each method is measured.
        metrics: Names of the numbers that one run gives.
        measure: Called as ``measure(method, column, seed)`` with a copy of the row's method; returns every metric.
        seeds: The seeds of each profile.
        profiles: For each profile, the parameters to set on the rows that have them.
        printed: The paper's number for ``(row, column, metric)``, in the unit that is shown.
        needs: Names of the data sets it needs.
        notes: Choices of the protocol, and differences from the paper's.
        higher_is_better: Whether larger values of a metric are better; its best value is then set in bold.
        formats: Number format of a metric, ``.2f`` by default; ``.1%`` shows a fraction as a percentage.
        average: Adds the mean over the columns if there are more than three.

    Example:
        >>> table = Table(name="squares", source="Example, Table 1", rows={"two": 2, "three": 3},
        ...               columns=("plain",), metrics=("square",), seeds={"cpu": [0]}, profiles={"cpu": {}},
        ...               measure=lambda method, column, seed: {"square": method**2})
        >>> table.measure(table.method("three", "cpu"), "plain", 0)
        {'square': 9}
    """

    name: str
    source: str
    caption: str = ""
    rows: Mapping[str, Any]
    columns: tuple[str, ...]
    metrics: tuple[str, ...]
    measure: Measure
    seeds: Mapping[str, Sequence[int]]
    profiles: Mapping[str, Mapping[str, object]]
    printed: Mapping[tuple[str, str, str], float | str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    notes: str = ""
    higher_is_better: Mapping[str, bool] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    average: bool = False

    def __post_init__(self) -> None:
        if self.name != slug(self.name):
            raise ValueError(f"name must be lower-case words joined by hyphens; got {self.name!r}")
        require_distinct("rows", [*self.rows], [slug(row) for row in self.rows])
        require_distinct("columns", self.columns, [slug(column) for column in self.columns])
        require_distinct("metrics", self.metrics, self.metrics)
        require_known("metrics of higher_is_better", self.higher_is_better, self.metrics)
        require_known("metrics of formats", self.formats, self.metrics)
        for position, argument in enumerate(("rows", "columns", "metrics")):
            require_known(f"{argument} of printed", (key[position] for key in self.printed), getattr(self, argument))
        self._check_profiles()

    def _check_profiles(self) -> None:
        if set(self.seeds) != set(self.profiles) or not self.seeds:
            raise ValueError(f"seeds and profiles must name the same profiles; got {[*self.seeds]}, {[*self.profiles]}")
        if empty := [profile for profile, seeds in self.seeds.items() if not seeds]:
            raise ValueError(f"seeds must hold one or more seeds for each profile; got none for {empty}")
        settable = {name for method in self.rows.values() for name in settings_of(method)}
        for profile, overrides in self.profiles.items():
            require_known(f"parameters of the profile {profile!r}", overrides, settable)

    @property
    def shown_profile(self) -> str:
        """The profile that the page of verdicts shows."""
        return "cpu" if "cpu" in self.profiles else next(iter(self.profiles))

    def format(self, metric: str) -> str:
        """Returns the number format of ``metric``."""
        return self.formats.get(metric, ".2f")

    def method(self, row: str, profile: str) -> Any:
        """Returns a copy of the row's method with the profile's parameters set on it."""
        method = clone(self.rows[row], safe=False)
        overrides = {name: v for name, v in self.profiles[profile].items() if name in settings_of(method)}
        if not overrides:
            return method
        if isinstance(method, Mapping):
            return {**method, **overrides}
        return method.set_params(**overrides) if hasattr(method, "set_params") else replace(method, **overrides)
