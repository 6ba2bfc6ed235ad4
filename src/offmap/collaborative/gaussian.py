"""A Gaussian whose mean and variance follow the embedding of a task."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from offmap.collaborative.conditional import ConditionalDensity
from offmap.collaborative.exposures import Exposures
from offmap.collaborative.levels import merged
from offmap.nets import mlp
from offmap.parameters import Count


def gaussian_log_density(X: Tensor, parameters: Tensor) -> Tensor:
    r"""$\log N(x; \mu, \operatorname{diag} \sigma^2)$ of each row, for the mean and log variance in the row beside it.

    Example:
        >>> gaussian_log_density(torch.zeros(1, 2), torch.zeros(1, 4))
        tensor([-1.8379])
    """
    mean, log_variance = parameters.chunk(2, dim=-1)
    deviation = (X - mean).square() * (-log_variance).exp()
    return -0.5 * (deviation + log_variance + math.log(2 * math.pi)).sum(dim=-1)


class EmbeddedGaussian(nn.Module):
    """Maps embeddings to a mean and a log variance of each feature."""

    def __init__(self, size: int, hidden: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.layers = mlp([size, *hidden, 2 * width])

    def parameters_of(self, embeddings: Tensor) -> Tensor:
        """Mean and log variance; the latter bounded, since a task of one exposure has none."""
        mean, log_variance = self.layers(embeddings).chunk(2, dim=-1)
        return torch.cat([mean, _BOUND * torch.tanh(log_variance / _BOUND)], dim=-1)

    def forward(self, X: Tensor, embeddings: Tensor) -> Tensor:
        """The log density of each row for the task beside it."""
        return gaussian_log_density(X, self.parameters_of(embeddings))


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianDetector(ConditionalDensity):
    r"""Flags rows of low density under a Gaussian of the task: $N(\mu(e_t), \operatorname{diag} \sigma^2(e_t))$.

    One perceptron maps embeddings to means and variances. With ``joint=False`` each task has the mean and variance of
    its own exposures; the variance is drawn towards that of the population as by ten exposures more.

    Reference: Bai et al., Collaborative Anomaly Detection, section 5.1.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> tasks = np.repeat(np.arange(20), 50)
        >>> X = rng.normal(size=(1000, 2)) + np.stack([np.cos(tasks), np.sin(tasks)], axis=1) * 3
        >>> detector = GaussianDetector(joint=False, random_state=0).fit(X, tasks)
        >>> own, opposite = detector.novelty([[3.0, 0.0], [-3.0, 0.0]], [0, 0])
        >>> bool(own < opposite)
        True
    """

    hidden: tuple[Count, ...] = (64, 64)

    def _build_density(self) -> EmbeddedGaussian:
        return EmbeddedGaussian(self.embedding_size_, tuple(self.hidden), math.prod(self.input_shape_))

    def _build_alone(self) -> None:
        """Means and variances need no network."""

    def _fit_alone(self, shown: Exposures) -> Tensor:
        return self._embed_alone(self._all_features(shown.X), shown)

    def _embed_alone(self, features: Tensor, shown: Exposures) -> Tensor:
        mean = shown.task_means(features)
        variance = shown.task_means(features.square()) - mean.square()
        return self._described(mean, variance.clamp(min=0), shown.counts.unsqueeze(1))

    def _familiarity(self, features: Tensor, embeddings: Tensor) -> Tensor:
        return gaussian_log_density(features, self._parameters_of(embeddings))

    def _parameters_of(self, embeddings: Tensor) -> Tensor:
        """Mean and log variance of tasks; those that learn alone have them for an embedding."""
        if self.joint and isinstance(self.density_, EmbeddedGaussian):
            return self.density_.parameters_of(embeddings)
        return embeddings

    def _familiarity_to_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        parameters = self._parameters_of(embeddings)
        mean, log_variance = parameters.chunk(2, dim=1)
        precision = (-log_variance).exp()
        constant = (mean.square() * precision + log_variance + math.log(2 * math.pi)).sum(dim=1)
        return -0.5 * (features.square() @ precision.T - 2 * features @ (mean * precision).T + constant)

    def _learn_on(self, places: Tensor, features: Tensor, shown: Exposures) -> Tensor:
        if self.joint:
            return super()._learn_on(places, features, shown)
        before = self.tasks_.column("count")[places]
        old, new = self.tasks_.column("embedding")[places], self._embed_alone(features, shown)
        width = features.shape[1]
        mine = torch.stack([old[:, :width], self._own_variance(old[:, width:], before)], dim=2).view(-1, 2)
        more = torch.stack([new[:, :width], self._own_variance(new[:, width:], shown.counts.unsqueeze(1))], dim=2)
        sizes = [counts.expand(-1, width).reshape(-1) for counts in (before, shown.counts.unsqueeze(1))]
        both = merged(mine, sizes[0], more.view(-1, 2), sizes[1]).view(len(places), width, 2)
        return self._described(both[..., 0], both[..., 1], before + shown.counts.unsqueeze(1))

    def _own_variance(self, log_variance: Tensor, counts: Tensor) -> Tensor:
        """The variance of a task's own exposures, before it was drawn to the population's."""
        return ((log_variance.exp() * (counts + _PRIOR_EXPOSURES) - _PRIOR_EXPOSURES) / counts).clamp(min=0)

    def _described(self, mean: Tensor, variance: Tensor, counts: Tensor) -> Tensor:
        # Standardised rows: the population's variance is 1.
        shrunk = (counts * variance + _PRIOR_EXPOSURES) / (counts + _PRIOR_EXPOSURES)
        return torch.cat([mean, shrunk.log()], dim=1)


# Bound of log variances, and weight of the population's variance in that of a task.
_BOUND, _PRIOR_EXPOSURES = 6.0, 10.0
