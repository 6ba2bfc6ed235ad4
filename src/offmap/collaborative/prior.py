"""The normal distribution of embeddings, which new entities start from."""

import torch
from torch import Tensor, nn


class Prior(nn.Module):
    """A normal distribution: a mean, and a root of the covariance.

    Args:
        size: Width of an embedding.
    """

    mean: Tensor
    root: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        # Not torch.eye, for the reason that Gram gives.
        self.register_buffer("root", torch.zeros(size, size).fill_diagonal_(1))

    def embeddings(self, points: Tensor) -> Tensor:
        """Points in coordinates in which the prior is standard normal, as embeddings."""
        return self.mean + points @ self.root.T

    def points(self, embeddings: Tensor) -> Tensor:
        """Embeddings in coordinates in which the prior is standard normal."""
        return torch.linalg.solve_triangular(self.root.T, embeddings - self.mean, upper=True, left=False)

    def fit(self, embeddings: Tensor) -> "Prior":
        """Takes mean and covariance of embeddings; a small variance is added, so that no direction has none."""
        self.mean.copy_(embeddings.mean(dim=0))
        spread = torch.atleast_2d(torch.cov(embeddings.T.double()))
        floor = 1e-3 * spread.diagonal().mean().clamp(min=1e-6)
        self.root.copy_(torch.linalg.cholesky(spread + floor * torch.eye(len(spread), device=spread.device)))
        return self


class DiagonalPrior(nn.Module):
    """A normal distribution of independent numbers, for embeddings too wide for a covariance.

    Args:
        size: Width of an embedding.
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("spread", torch.ones(size))

    def embeddings(self, points: Tensor) -> Tensor:
        """Points in coordinates in which the prior is standard normal, as embeddings."""
        return self.mean + points * self.spread

    def points(self, embeddings: Tensor) -> Tensor:
        """Embeddings in coordinates in which the prior is standard normal."""
        return (embeddings - self.mean) / self.spread

    def fit(self, embeddings: Tensor) -> "DiagonalPrior":
        """Takes mean and standard deviation of embeddings; a small one is added, so that no number has none."""
        self.mean.copy_(embeddings.mean(dim=0))
        self.spread.copy_(embeddings.std(dim=0, correction=0) + 1e-3)
        return self
