"""A Gaussian per entity, whose mean and variance are functions of the entity's embedding."""

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from offmap.collaborative.density import build_density, fit_density
from offmap.collaborative.embedding_detector import EmbeddingDetector
from offmap.collaborative.observations import Observations
from offmap.collaborative.parts import Learned, PairHead
from offmap.nets import mlp
from offmap.parameters import Count

# Bound of log variances.
_BOUND = 6.0


def gaussian_log_density(X: Tensor, parameters: Tensor) -> Tensor:
    r"""$\log N(x; \mu, \operatorname{diag} \sigma^2)$ of each row, for the mean and log variance in the row beside it.

    Example:
        >>> gaussian_log_density(torch.zeros(1, 2), torch.zeros(1, 4))
        tensor([-1.8379])
    """
    mean, log_variance = parameters.chunk(2, dim=-1)
    deviation = (X - mean).square() * (-log_variance).exp()
    return -0.5 * (deviation + log_variance + math.log(2 * math.pi)).sum(dim=-1)


def gaussian_log_densities(X: Tensor, parameters: Tensor) -> Tensor:
    """The same for every row with every mean and log variance, as a matrix."""
    mean, log_variance = parameters.chunk(2, dim=1)
    precision = (-log_variance).exp()
    constant = (mean.square() * precision + log_variance + math.log(2 * math.pi)).sum(dim=1)
    return -0.5 * (X.square() @ precision.T - 2 * X @ (mean * precision).T + constant)


class GaussianHead(PairHead):
    """Maps embeddings to the mean and log variance of each feature.

    Args:
        size: Width of an embedding.
        hidden: Widths of the hidden layers.
        width: Number of features.
    """

    def __init__(self, size: int, hidden: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.layers = mlp([size, *hidden, 2 * width])

    def parameters_of(self, embeddings: Tensor) -> Tensor:
        """Mean and log variance; the latter is bounded, since an entity with one row has no variance."""
        mean, log_variance = self.layers(embeddings).chunk(2, dim=-1)
        return torch.cat([mean, _BOUND * torch.tanh(log_variance / _BOUND)], dim=-1)

    def forward(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """The log density of each row for the entity beside it."""
        return gaussian_log_density(features, self.parameters_of(embeddings))

    def score_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """The log density of every row for every entity, as a matrix."""
        return gaussian_log_densities(features, self.parameters_of(embeddings))


@final
@dataclass(kw_only=True, eq=False, repr=False)
class EntityGaussianDetector(EmbeddingDetector):
    r"""Scores rows by their density under a Gaussian of the entity: $N(\mu(e_t), \operatorname{diag} \sigma^2(e_t))$.

    One perceptron maps the embeddings of all entities to means and variances. ``SeparateGaussianDetector`` has no
    embeddings and takes the moments of each entity's own rows.

    Args:
        hidden: Widths of the hidden layers of that perceptron.

    Attributes:
        centre_: Mean of the embeddings of the fitted entities.

    Reference: Bai et al., Collaborative Anomaly Detection, section 5.1.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> entities = np.repeat(np.arange(20), 50)
        >>> X = rng.normal(size=(1000, 2)) + np.stack([np.cos(entities), np.sin(entities)], axis=1) * 3
        >>> detector = EntityGaussianDetector(epochs=30, lr=1e-2, random_state=0).fit(X, entities)
        >>> own, opposite = detector.novelty([[3.0, 0.0], [-3.0, 0.0]], [0, 0])
        >>> bool(own < opposite)
        True
    """

    hidden: tuple[Count, ...] = (64, 64)

    def _build_parts(self) -> None:
        build_density(self, self._new_head)

    def _fit(self, observed: Observations, given: Tensor | None) -> Learned:
        return fit_density(self, self._new_head, observed, given)

    def _new_head(self) -> GaussianHead:
        return GaussianHead(self.embedding_size_, tuple(self.hidden), math.prod(self.input_shape_))
