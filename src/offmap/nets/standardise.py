"""Features with mean 0 and standard deviation 1, as the first layer of a network."""

from typing import Self

import torch
from torch import Tensor, nn


class Standardise(nn.Module):
    r"""Maps each feature to $(x - \mu) / \sigma$ of the rows it was fitted on.

    A constant feature is only shifted; a small one is divided by its size, so that a change counts in any unit.

    Example:
        >>> layer = Standardise(2).fit(torch.tensor([[0.0, 5.0], [2.0, 5.0]]))
        >>> layer(torch.tensor([[1.0, 6.0]]))
        tensor([[0., 1.]])
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))

    def fit(self, X: Tensor) -> Self:
        """Measures the rows of ``X``, in double precision: a large mean leaves few digits to a float's variance."""
        precise = X.double()
        return self.set(precise.mean(dim=0), precise.std(dim=0, correction=0))

    def set(self, mean: Tensor, scale: Tensor) -> Self:
        """Takes mean and standard deviation of each feature that are known already, in double precision."""
        # Below the resolution of float32 at that mean, the spread is rounding and the feature is constant.
        resolution = torch.finfo(torch.float32).eps * mean.abs()
        constant = scale <= resolution + 1e-30
        self.mean.copy_(mean)
        size = torch.where(mean == 0, 1.0, mean.abs().clamp(max=1))
        self.scale.copy_(torch.where(constant, torch.maximum(resolution, size), scale))
        return self

    def forward(self, X: Tensor) -> Tensor:
        """Standardised rows."""
        return (X - self.mean) / self.scale
