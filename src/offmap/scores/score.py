"""What every post-hoc score is: fitted on what a model computed of known rows, then asked about new ones."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Outputs:
    """What a model computed for rows: ``features`` (n, d) and ``logits`` (n, c); None where there are none.

    Args:
        features: The features of each row, such as the last hidden layer; an array or a tensor.
        logits: One column per class; an array or a tensor.

    Example:
        >>> len(Outputs(logits=[[0.0, 1.0], [2.0, 0.0]]))
        2
    """

    features: Any = None
    logits: Any = None

    def __post_init__(self) -> None:
        for name in ("features", "logits"):
            given = getattr(self, name)
            object.__setattr__(self, name, None if given is None else _as_matrix(name, given))
        # By shape, not by len, which would fix the number of rows where a graph is traced.
        both = self.features is not None and self.logits is not None
        if both and self.features.shape[0] != self.logits.shape[0]:
            raise ValueError(f"features has {len(self.features)} rows and logits has {len(self.logits)}; give as many")

    def __len__(self) -> int:
        given = self.logits if self.features is None else self.features
        return 0 if given is None else len(given)

    def take(self, index: Any) -> "Outputs":
        """The outputs of some of the rows."""
        return Outputs(*(None if part is None else part[index] for part in (self.features, self.logits)))


def _as_matrix(name: str, given: Any) -> Tensor:
    """A tensor with one row per row; tensors stay as they are."""
    if not isinstance(given, Tensor):
        given = torch.from_numpy(np.array(given, dtype=np.float64))
    if given.ndim != 2:
        raise ValueError(f"{name} must have one row per row and one column per value; got shape {tuple(given.shape)}")
    return given.detach().cpu()


# Rows per matrix product when scoring: always the same, since products of another height may round differently.
ROWS_PER_PRODUCT = 256


@dataclass(kw_only=True, eq=False, repr=False)
class Score(BaseEstimator, ABC):
    """Scores rows by a model's features or logits, higher for novel rows; write ``_fit`` and ``_novelty``."""

    # What the score reads, and whether it learns from known rows (and their classes) at all.
    reads: ClassVar[frozenset[str]] = frozenset({"features"})
    needs_rows: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = False
    # How many rows are scored at once, by scores whose products keep to ``ROWS_PER_PRODUCT`` a multiple of it.
    rows_at_once: ClassVar[int] = ROWS_PER_PRODUCT

    def fit(self, known: Outputs, codes: Tensor | None = None) -> Self:
        """Learns from the outputs of known rows; ``codes`` are the codes 0, 1, … of their classes."""
        self._require(known)
        if self.needs_labels and codes is None:
            raise ValueError(
                f"{type(self).__name__} needs the classes of the known rows; give y, or y_reference to calibrate"
            )
        if self.needs_rows and len(known) < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 known rows; got {len(known)}")
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
    features: Tensor = outputs.features
    return features.double()


def logits_of(outputs: Outputs) -> Tensor:
    """The logits in double precision."""
    logits: Tensor = outputs.logits
    return logits.double()


def unit(rows: Tensor) -> Tensor:
    """Rows of length 1; a row of zeros stays as it is.

    Example:
        >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
        tensor([[0.6000, 0.8000],
                [0.0000, 0.0000]])
    """
    return rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-12)
