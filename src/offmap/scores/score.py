"""What every post-hoc score is: fitted on what a model computed of known rows, then asked about new ones."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import torch
from sklearn.base import BaseEstimator
from torch import Tensor


class Outputs(NamedTuple):
    """What a model computed of rows: ``features`` (n, d) and ``logits`` (n, c); None where there are none.

    Example:
        >>> Outputs(logits=torch.zeros(2, 3)).rows
        2
    """

    features: Tensor | None = None
    logits: Tensor | None = None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        given = self.logits if self.features is None else self.features
        return 0 if given is None else len(given)

    def take(self, index: Tensor | slice) -> "Outputs":
        """The outputs of some of the rows."""
        return Outputs(*(None if part is None else part[index] for part in self))


@dataclass(kw_only=True, eq=False, repr=False)
class Score(BaseEstimator, ABC):
    """A novelty of rows, higher for novel ones, from a model's features or logits; write ``_fit`` and ``_novelty``."""

    # What the score reads, and whether it learns from known rows (and their classes) at all.
    reads: ClassVar[frozenset[str]] = frozenset({"features"})
    needs_rows: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = False

    def fit(self, known: Outputs, codes: Tensor | None = None) -> Self:
        """Learns from the outputs of known rows; ``codes`` are the codes 0, 1, … of their classes."""
        self._require(known)
        if self.needs_labels and codes is None:
            raise ValueError(f"{type(self).__name__} needs the classes of the known rows; give y")
        if self.needs_rows and known.rows < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 known rows; got {known.rows}")
        with torch.no_grad():
            self._fit(known, codes)
        return self

    def novelty(self, outputs: Outputs) -> Tensor:
        """The novelty of each row, from its outputs alone."""
        self._require(outputs)
        with torch.no_grad():
            return self._novelty(outputs)

    def _require(self, outputs: Outputs) -> None:
        for part in sorted(self.reads):
            if getattr(outputs, part) is None:
                raise ValueError(f"{type(self).__name__} needs the model's {part}; give {part}=")

    @abstractmethod
    def _fit(self, known: Outputs, codes: Tensor | None) -> None:
        """Learns from known rows; scores that have nothing to learn leave it empty."""

    @abstractmethod
    def _novelty(self, outputs: Outputs) -> Tensor:
        """The novelty of each row."""


def features_of(outputs: Outputs) -> Tensor:
    """The features in double precision."""
    assert outputs.features is not None
    return outputs.features.double()


def logits_of(outputs: Outputs) -> Tensor:
    """The logits in double precision."""
    assert outputs.logits is not None
    return outputs.logits.double()


def unit(rows: Tensor) -> Tensor:
    """Rows of length 1; a row of zeros stays as it is.

    Example:
        >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
        tensor([[0.6000, 0.8000],
                [0.0000, 0.0000]])
    """
    return rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-12)
