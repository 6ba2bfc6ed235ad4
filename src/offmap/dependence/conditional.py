"""Gaussian models of one variable given another, and of one variable alone, in stacks."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from offmap import parameters
from offmap.nets.stacked import stacked_mlp
from offmap.parameters import Count

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
# Largest absolute value of the logarithm of a variance.
_LIMIT = 8.0


def real_columns(widths: Sequence[int]) -> Tensor:
    """Marks the columns ``(terms, 1, widest)`` that are data and not padding."""
    return torch.arange(max(widths)) < torch.tensor(widths)[:, None, None]


class GaussianConditional(nn.Module):
    r"""The density $q(y \mid x) = \mathcal N(y; \mu(x), \sigma^2(x))$ with a network for $\mu$ and one for $\sigma$.

    Args:
        x_widths: Width of ``x`` in each term.
        y_widths: Width of ``y`` in each term.
        hidden: Widths of the hidden layers.
        learn_variance: Whether $\sigma$ is learnt; otherwise it is 1.
    """

    real: Tensor

    def __init__(
        self, x_widths: Sequence[int], y_widths: Sequence[int], hidden: Sequence[int], learn_variance: bool
    ) -> None:
        super().__init__()
        parameters.require("hidden", hidden, tuple[Count, ...])
        self.mean = stacked_mlp(x_widths, [*hidden, max(y_widths)])
        self.log_variance = stacked_mlp(x_widths, [*hidden, max(y_widths)]) if learn_variance else None
        self.register_buffer("real", real_columns(y_widths))

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Returns means and log variances, ``(terms, n, widest)`` each."""
        mean = self.mean(x)
        if self.log_variance is None:
            return mean, torch.zeros_like(mean)
        # Bounded, so that one bad step cannot give a variance of 0.
        return mean, _LIMIT * (self.log_variance(x) / _LIMIT).tanh()

    def log_density(self, x: Tensor, y: Tensor) -> Tensor:
        r"""Returns $\log q(y \mid x)$ of each row, ``(terms, n)``."""
        mean, log_variance = self.moments(x)
        logs = -0.5 * ((y - mean).square() * (-log_variance).exp() + log_variance) - _HALF_LOG_2PI
        return (logs * self.real).sum(-1)

    def contrast(self, x: Tensor, y: Tensor) -> Tensor:
        r"""Returns $\log q(y_i \mid x_i)$ minus its mean over the other $y_j$, in time linear in the rows.

        The squares $(y_j - \mu_i)^2$ have the mean $(\bar y - \mu_i)^2 + \mathrm{var}(y)$ over all $j$; leaving
        $j = i$ out scales the difference by $n / (n - 1)$.
        """
        mean, log_variance = self.moments(x)
        spread, centre = torch.var_mean(y, dim=1, keepdim=True, correction=0)
        gap = (centre - mean).square() + spread - (y - mean).square()
        rows = y.shape[1]
        return 0.5 * rows / (rows - 1) * (gap * (-log_variance).exp() * self.real).sum(-1)


class GaussianMarginal(nn.Module):
    r"""A Gaussian density $r(y)$ with a learnt mean and a learnt full covariance.

    Args:
        y_widths: Width of ``y`` in each term.
    """

    real: Tensor

    def __init__(self, y_widths: Sequence[int]) -> None:
        super().__init__()
        terms, widest = len(y_widths), max(y_widths)
        self.mean = nn.Parameter(torch.zeros(terms, 1, widest))
        self.log_scale = nn.Parameter(torch.zeros(terms, 1, widest))
        self.mixing = nn.Parameter(torch.zeros(terms, widest, widest))
        self.register_buffer("real", real_columns(y_widths))

    def log_density(self, y: Tensor) -> Tensor:
        r"""Returns $\log r(y)$ of each row, ``(terms, n)``, after whitening by a triangular matrix."""
        centred = (y - self.mean) * self.real
        white = (centred + centred @ self.mixing.triu(1)) * self.log_scale.exp()
        return ((self.log_scale - 0.5 * white.square() - _HALF_LOG_2PI) * self.real).sum(-1)
