"""What the columns of a table are for: features, label, entity, text, or names that are kept beside the scores."""

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import pandas as pd

__all__ = ["ALL", "NoSuchColumn", "Roles", "names_beside"]

# The name that stands for every column, in ``keep``.
ALL = "all"


class NoSuchColumn(ValueError):
    """A table has no column of the given name."""


@dataclass(frozen=True, kw_only=True)
class Roles:
    """What the columns of a table are for. A model remembers the roles that it was fitted with.

    Args:
        text: The column of texts; then no other column is a feature.
        label: The column of labels.
        entity: The column of entities.
        only: The columns that are features; by default all that have no other role.
        drop: Columns that are no features.
        id: Columns that name a row; they are no features and are kept beside the scores.
        keep: Columns that are kept beside the scores, whatever else they are; "all" keeps every column.
        kinds: Kind of columns that should not be guessed, as pairs of name and kind.

    Example:
        >>> Roles(label="fraud", id=("card",)).feature_names(["card", "paid", "fraud"])
        ['paid']
    """

    text: str | None = None
    label: str | None = None
    entity: str | None = None
    only: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    id: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    kinds: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.label is not None and self.entity is not None:
            raise ValueError("label and entity must not both be given: a model learns classes or entities")
        if self.text is not None and self.text == self.target:
            raise ValueError(f"text and label must be two different columns; both are {self.text!r}")
        if clash := [name for name in self.only if name in (*self.drop, *self.id, self.target)]:
            raise ValueError(f"the column {clash[0]!r} cannot be in only and have another role")

    @classmethod
    def remembered(cls, content: dict[str, Any]) -> Self:
        """The roles that a model kept."""
        return cls(**content)

    def to_dict(self) -> dict[str, Any]:
        """The roles as plain values, for a model to keep."""
        return asdict(self)

    def but(self, given: "Roles") -> "Roles":
        """These roles, except those that ``given`` states."""
        return replace(self, **{name: value for name, value in given.to_dict().items() if value not in (None, ())})

    @property
    def target(self) -> str | None:
        """The column of labels or entities."""
        return self.entity if self.entity is not None else self.label

    @property
    def targeted(self) -> bool:
        """Whether any role is stated, which only a table can have."""
        return self != Roles()

    def feature_names(self, columns: Iterable[str]) -> list[str]:
        """The columns that are features."""
        if self.only:
            return list(self.only)
        others = {self.text, self.target, *self.drop, *self.id}
        return [name for name in columns if name not in others]

    def kept_names(self, columns: Iterable[str]) -> list[str]:
        """The columns that are kept beside the scores and that the table has."""
        if ALL in self.keep:
            return list(columns)
        wanted = dict.fromkeys((*self.id, *self.keep))
        return [name for name in columns if name in wanted]

    def text_name(self, kept: Collection[str]) -> str:
        """What the column of texts is called beside the scores: "text", unless another column that is kept is."""
        if self.text is None or not {self.text, "text"} & {*kept}:
            return "text"
        return self.text

    def require(self, frame: pd.DataFrame, where: str, optional: Iterable[str] = ()) -> None:
        """Raises a ``NoSuchColumn`` error that names every column that ``frame`` should have and lacks.

        Args:
            frame: The table.
            where: What it is called in messages.
            optional: Roles that a model remembers: their columns may be absent, but for the features that it reads.
        """
        if "only" in optional and self.text is None:
            self._require_fitted(frame, where)
        single = [("text", self.text), ("entity", self.entity), ("label", self.label)]
        groups = {"only": self.only, "drop": self.drop, "id": self.id, "keep": self.keep, "kind": dict(self.kinds)}
        named = [*single, *((role, name) for role, names in groups.items() for name in names)]
        absent = [
            f"{role} must be a column of {where}, not {name!r}"
            for role, name in named
            if name is not None and role not in optional and name not in frame.columns and (role, name) != ("keep", ALL)
        ]
        if absent:
            raise NoSuchColumn(f"{'; '.join(absent)}; it has {', '.join(repr(name) for name in frame.columns)}")

    def _require_fitted(self, frame: pd.DataFrame, where: str) -> None:
        if absent := [name for name in self.only if name not in frame.columns]:
            lacking, found = (", ".join(map(repr, names)) for names in (absent, frame.columns))
            raise NoSuchColumn(f"{where} lacks {lacking}, which the model was fitted on; it has {found}")


def names_beside(kept: Iterable[str], taken: Collection[str]) -> list[str]:
    """The names that kept columns get beside columns whose names are taken: those that clash get ``input_`` in front.

    Example:
        >>> names_beside(["id", "novelty", "input_novelty"], {"row", "novelty"})
        ['id', 'input_input_novelty', 'input_novelty']
    """
    kept = list(kept)
    used = {*taken, *kept}

    def free(name: str) -> str:
        while name in used:
            name = f"input_{name}"
        used.add(name)
        return name

    return [free(name) if name in taken else name for name in kept]
