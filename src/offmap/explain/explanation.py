"""What is known of why a row is novel: numbers, with words and a picture made of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from offmap.explain.composition import FloatArray, Indices, Kind
from offmap.explain.counterfactual import Counterfactual
from offmap.json_values import json_value


@dataclass(frozen=True)
class Reason:
    """One part of a row and what it contributes.

    Args:
        part: Its name: a feature, a clause or word, or a place of an image.
        value: What it holds.
        usual: What it holds in the nearest normal rows: a pair (lowest, highest), a set of values, or None.
        contribution: How much of the novelty is due to it.
        share: Its contribution as a share of all positive ones.
    """

    part: str
    value: Any
    usual: Any
    contribution: float
    share: float


@dataclass(frozen=True, eq=False)
class ClosestClass:
    """The known class that a row is closest to, and what speaks against it.

    Args:
        label: The class.
        proba: Its probability, given that the row is of a known class.
        against: Contributions of the parts, compared with the nearest rows of that class; None if the reference has no
            normal row of that class.
    """

    label: Any
    proba: float
    against: FloatArray | None


@dataclass(frozen=True, eq=False)
class EntityProfile:
    """What an entity usually sees, from its normal rows in the reference.

    Args:
        entity: Its id.
        rows: How many rows it has there; with 0 the row was compared with those of other entities.
        usual: What each part holds in them: a pair (lowest, highest), a set of values, or None.
    """

    entity: Any
    rows: int
    usual: tuple[Any, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation:
    """Why one row is as novel as it is. ``str`` gives it in words, ``to_dict`` in numbers, ``to_svg`` as a picture.

    Args:
        row: Position of the row in ``X``.
        kind: What the row is: "features", "text" or "image".
        novelty: Its novelty.
        threshold: The novelty above which rows are flagged; None with ``by_class``, where the p-value decides.
        p_value: Its conformal p-value; None if the model has none.
        novel: Whether it is flagged.
        parts: Names of its parts: features, clauses or words, places.
        values: What each part holds.
        usual: What each part holds in the nearest normal rows; empty for texts.
        contributions: How much of the novelty is due to each part. Exact ones sum to the novelty; those by occlusion
            are compared with the nearest normal rows.
        exact: Whether the contributions are exact.
        neighbors: Positions of the nearest normal rows in the reference.
        distances: Their distances.
        neighbor_rows: These rows.
        closest: The closest known class; None for detectors.
        profile: What the entity usually sees; None if the model knows no entities.
        counterfactual: The smallest change found after which the row is normal; None if it is normal already, or if
            none was asked for or found.
        image: The image itself, ``(h, w, c)``, and ``grid`` the part that each pixel belongs to; None for other rows.
        grid: See ``image``.
        alpha: The p-value up to which rows are flagged with ``by_class``; None where the threshold decides.
    """

    row: int
    kind: Kind
    novelty: float
    threshold: float | None
    p_value: float | None
    novel: bool
    parts: tuple[str, ...]
    values: tuple[Any, ...]
    usual: tuple[Any, ...]
    contributions: FloatArray
    exact: bool
    neighbors: Indices
    distances: FloatArray
    neighbor_rows: tuple[Any, ...]
    closest: ClosestClass | None = None
    profile: EntityProfile | None = None
    counterfactual: Counterfactual | None = None
    image: Any = None
    grid: Any = None
    alpha: float | None = None

    def reasons(self, k: int | None = None) -> list[Reason]:
        """The parts that make the row novel, the strongest first; those that make it more normal are left out.

        Args:
            k: How many at most; by default all.
        """
        return self.ranked(self.contributions, k)

    def ranked(self, contributions: FloatArray, k: int | None = None) -> list[Reason]:
        """The parts with positive contributions, the largest first."""
        total = float(np.maximum(contributions, 0).sum())
        order = np.argsort(-contributions, kind="stable")[:k]
        return [
            Reason(
                part=self.parts[j],
                value=self.values[j],
                usual=self.usual[j] if self.usual else None,
                contribution=float(contributions[j]),
                share=float(contributions[j]) / total,
            )
            for j in order
            if contributions[j] > 0
        ]

    def __str__(self) -> str:
        from offmap.explain.wording import in_words

        return in_words(self)

    def to_svg(self) -> str:
        """A picture: bars per feature, marked words, or the image with its places."""
        from offmap.explain.picture import draw

        return draw(self)

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return self.to_svg()

    def to_dict(self) -> dict[str, Any]:
        """Everything but the pictures as plain numbers, strings, lists and dicts, ready for JSON."""
        found = {
            "row": self.row,
            "kind": self.kind,
            "novelty": json_value(self.novelty),
            "threshold": json_value(self.threshold),
            "p_value": json_value(self.p_value),
            **({} if self.alpha is None else {"alpha": json_value(self.alpha)}),
            "novel": self.novel,
            "exact": self.exact,
            "reasons": [json_value(vars(reason)) for reason in self.reasons()],
            "neighbors": [json_value(pair) for pair in self._neighbors()],
            "counterfactual": None if self.counterfactual is None else json_value(_changes(self.counterfactual)),
        }
        if self.closest is not None:
            against = [] if self.closest.against is None else self.ranked(self.closest.against)
            found["closest"] = json_value(
                {
                    "label": self.closest.label,
                    "proba": self.closest.proba,
                    "against": [vars(reason) for reason in against],
                }
            )
        if self.profile is not None:
            usual = dict(zip(self.parts, self.profile.usual, strict=False))
            found["entity"] = json_value({"id": self.profile.entity, "rows": self.profile.rows, "usual": usual})
        return found

    def _neighbors(self) -> list[dict[str, Any]]:
        pairs = zip(self.neighbors.tolist(), self.distances.tolist(), self.neighbor_rows, strict=True)
        shown = self.kind != "image"
        return [{"row": row, "distance": far} | ({"values": values} if shown else {}) for row, far, values in pairs]


def _changes(counterfactual: Counterfactual) -> dict[str, Any]:
    names = ("changed", "names", "before", "after", "novelty", "p_value")
    return {name: getattr(counterfactual, name) for name in names}
