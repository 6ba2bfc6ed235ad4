"""Negatives: rows that the encoder is trained to map away from the prior of normal rows.

A source maps a batch of prepared training rows to as many negatives. Negatives that the decoder generates have no such
source: encoder and decoder are then trained against each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from torch import Tensor

from offmap.arrays import as_images, to_tensor
from offmap.data import load
from offmap.parameters import Positive, check

Source = Callable[[Tensor], Tensor]
# Sources that need no other data.
_SYNTHETIC = ("noise", "uniform", "generated")


@dataclass(kw_only=True, eq=False, repr=False)
class Negatives(BaseEstimator):
    """Where negatives come from and how strongly they count; a parameter of ``VAEDetector``.

    Args:
        source: "noise" (training rows with Gaussian noise), "uniform" (uniform noise), "generated" (by the decoder,
            in adversarial training), an array of rows of another kind, or the name of a data set.
        weight: Weight of the negatives in the objective.
        shift: Each coordinate of the mean of the negatives' prior. By default 8, and 25 for colour images.
        noise_sd: Standard deviation of the noise of the source "noise", in units of standardised features, or of
            intensities in [0, 1].

    Example:
        >>> Negatives(source="noise", noise_sd=0.5)
        Negatives(noise_sd=0.5, source='noise')
    """

    source: np.ndarray[Any, Any] | str
    weight: Positive = 1.0
    shift: Positive | None = None
    noise_sd: Positive = 0.25

    @classmethod
    def of(cls, negatives: "np.ndarray[Any, Any] | str | Negatives | None") -> "Negatives | None":
        """The negatives that a user asked for by a source alone or with settings, checked."""
        found = negatives if negatives is None or isinstance(negatives, Negatives) else cls(source=negatives)
        if found is not None:
            check(found)
        return found

    @property
    def generated(self) -> bool:
        """Whether the decoder generates them."""
        return isinstance(self.source, str) and self.source == "generated"

    def auxiliary_rows(
        self, row_shape: tuple[int, ...], device: str, prepare: Callable[[Any], Any] = lambda rows: rows
    ) -> Tensor:
        """The rows given as an array or by the name of a data set, checked; no rows for the other sources.

        Args:
            row_shape: Shape of a training row, ``(d,)`` or ``(h, w, c)``.
            device: Device of the result.
            prepare: Brings the rows into the units of the training rows before the cast to single precision.
        """
        if isinstance(self.source, str) and self.source in _SYNTHETIC:
            return to_tensor(np.empty((0, *row_shape)), device)
        rows = load(self.source).X if isinstance(self.source, str) else self.source
        # A copy: the arrays of named data sets are shared and read-only.
        rows = check_array(rows, allow_nd=True, dtype="numeric", copy=True, input_name="negatives")
        if len(row_shape) == 3:
            rows = as_images(rows, row_shape, "negatives")
        if rows.shape[1:] != tuple(row_shape):
            raise ValueError(f"negatives must be rows of the shape {tuple(row_shape)} of X; got {rows.shape[1:]}")
        return to_tensor(prepare(rows), device)

    def sampler(self, auxiliary: Tensor, training: Tensor) -> Source | None:
        """The function that draws negatives for a batch; None if the decoder generates them.

        Args:
            auxiliary: Prepared auxiliary rows, which may be none.
            training: Prepared training rows.
        """
        if len(auxiliary):
            return AuxiliaryRows(auxiliary)
        if self.generated:
            return None
        return AddedNoise(self.noise_sd) if self.source == "noise" else UniformNoise.like(training)


@dataclass(frozen=True)
class AuxiliaryRows:
    """Rows of another data set, drawn at random with replacement.

    Args:
        rows: Prepared rows of the auxiliary set.
    """

    rows: Tensor

    def __call__(self, X: Tensor) -> Tensor:
        """As many auxiliary rows as ``X`` has."""
        return self.rows[torch.randint(len(self.rows), (len(X),), device=X.device)]


@dataclass(frozen=True)
class AddedNoise:
    r"""Training rows with Gaussian noise: $x + \sigma \varepsilon$.

    Args:
        noise_sd: Standard deviation of the noise, in the units of prepared rows.
    """

    noise_sd: float

    def __call__(self, X: Tensor) -> Tensor:
        """Each row of ``X``, with noise."""
        return X + self.noise_sd * torch.randn_like(X)


@dataclass(frozen=True)
class UniformNoise:
    """Independent uniform values: from [0, 1] for pixels, from the range of each feature otherwise.

    Args:
        low: Smallest value, for all features or per feature.
        high: Largest value.
    """

    low: Tensor
    high: Tensor

    @classmethod
    def like(cls, X: Tensor) -> Self:
        """Uniform noise in the ranges of prepared training rows."""
        if X.ndim == 4:
            return cls(torch.zeros((), device=X.device), torch.ones((), device=X.device))
        return cls(X.amin(0), X.amax(0))

    def __call__(self, X: Tensor) -> Tensor:
        """As many rows of noise as ``X`` has."""
        return self.low + (self.high - self.low) * torch.rand_like(X)


@dataclass(frozen=True)
class Mutation:
    """Replaces a share of the values of each row by random ones, which keeps the background and destroys the content.

    Args:
        values: Source of the new values.
        share: Share of the values that is replaced.
    """

    values: UniformNoise
    share: float

    def __call__(self, X: Tensor) -> Tensor:
        """Each row of ``X``, mutated."""
        return torch.where(torch.rand_like(X) < self.share, self.values(X), X)
