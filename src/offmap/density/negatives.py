"""Where negatives come from: rows that the encoder is to send away from the prior.

A source maps a batch of prepared training rows to as many negatives. Generated negatives are no source of this kind:
they come from the model itself, which trains as two players.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_array
from torch import Tensor

from offmap.arrays import as_images, to_tensor
from offmap.data import load

Source = Callable[[Tensor], Tensor]
# Negatives that need no other data.
_MADE_UP = ("noise", "uniform", "generated")


def auxiliary_rows(negatives: NDArray[Any] | str | None, row_shape: tuple[int, ...], device: str) -> Tensor:
    """Checks auxiliary negatives, given as an array or by the name of a data set, and makes a tensor of them.

    Args:
        negatives: What the user gave; there are no rows if it is None, or a kind of negatives that needs none.
        row_shape: Shape of a training row, ``(d,)`` or ``(h, w, c)``.
        device: Where the tensor goes.
    """
    if negatives is None or (isinstance(negatives, str) and negatives in _MADE_UP):
        return to_tensor(np.empty((0, *row_shape)), device)
    rows = load(negatives).X if isinstance(negatives, str) else negatives
    # A copy: the arrays of named data sets are shared and read-only.
    rows = check_array(rows, allow_nd=True, dtype="numeric", copy=True, input_name="negatives")
    if len(row_shape) == 3:
        rows = as_images(rows, row_shape, "negatives")
    if rows.shape[1:] != tuple(row_shape):
        raise ValueError(f"negatives must be rows of the shape {tuple(row_shape)} of X; got {rows.shape[1:]}")
    return to_tensor(rows, device)


def source_of(negatives: object, auxiliary: Tensor, training: Tensor, *, sigma: float) -> Source | None:
    """Where negatives come from; None if there are none, or if the model generates them.

    Args:
        negatives: What the user gave.
        auxiliary: Prepared rows of another data set, if that was given.
        training: Prepared training rows.
        sigma: Standard deviation of the noise of the negatives "noise".
    """
    if len(auxiliary):
        return Auxiliary(auxiliary)
    sources: dict[str, Source] = {"noise": Noisy(sigma), "uniform": Uniform.like(training)}
    return sources.get(str(negatives))


@dataclass(frozen=True)
class Auxiliary:
    """Rows of another data set, drawn at random with replacement.

    Args:
        rows: Prepared rows of the auxiliary set.
    """

    rows: Tensor

    def __call__(self, X: Tensor) -> Tensor:
        """As many auxiliary rows as ``X`` has."""
        return self.rows[torch.randint(len(self.rows), (len(X),), device=X.device)]


@dataclass(frozen=True)
class Noisy:
    r"""The training rows themselves with noise: $x + \sigma \varepsilon$.

    Args:
        sigma: Standard deviation of the noise, in the units of prepared rows.
    """

    sigma: float

    def __call__(self, X: Tensor) -> Tensor:
        """Each row of ``X``, with noise."""
        return X + self.sigma * torch.randn_like(X)


@dataclass(frozen=True)
class Uniform:
    """Values drawn one by one and uniformly: from [0, 1] for pixels, from the range of each feature otherwise.

    Args:
        low: Smallest value, of all or of each feature.
        high: Largest value.
    """

    low: Tensor
    high: Tensor

    @classmethod
    def like(cls, X: Tensor) -> Self:
        """The ranges of prepared training rows."""
        if X.ndim == 4:
            return cls(torch.zeros((), device=X.device), torch.ones((), device=X.device))
        return cls(X.amin(0), X.amax(0))

    def __call__(self, X: Tensor) -> Tensor:
        """As many rows of noise as ``X`` has."""
        return self.low + (self.high - self.low) * torch.rand_like(X)


@dataclass(frozen=True)
class Mutation:
    """The training rows with a share of their values drawn at random: the background without what it shows.

    Args:
        values: Where the new values come from.
        share: How many of the values are replaced.
    """

    values: Uniform
    share: float

    def __call__(self, X: Tensor) -> Tensor:
        """Each row of ``X``, mutated."""
        return torch.where(torch.rand_like(X) < self.share, self.values(X), X)
