"""Importance weights of a few draws, kept from falling to one of them."""

import torch
from torch import Tensor

# Share of the draws that their weights must be worth.
_WORTH = 0.5
# Halvings of the interval of the exponent.
_HALVINGS = 16


def importance_weights(log_weights: Tensor) -> Tensor:
    r"""Self-normalised weights $\tilde w_k \propto w_k^\alpha$ of draws along the first dimension.

    $\alpha$ is the largest number up to 1 at which the draws of a row are worth at least half of them, measured by the
    effective sample size $1 / \sum_k \tilde w_k^2$. In many dimensions the weights at $\alpha = 1$ fall to a single
    draw: what is fitted to that draw follows the noise, and training diverges. Where $q$ is close to $p$, weights are
    nearly equal and $\alpha = 1$.

    Reference: Koblents and Míguez, A Population Monte Carlo Scheme with Transformed Weights and Its Application to
    Stochastic Kinetic Models, Statistics and Computing, 2015.
    """
    least = _WORTH * len(log_weights)
    low, high = torch.zeros_like(log_weights[0]), torch.ones_like(log_weights[0])
    untouched = _worth(log_weights, high) >= least
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = _worth(log_weights, middle) >= least
        low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
    return (torch.where(untouched, 1.0, low) * log_weights).softmax(0)


def _worth(log_weights: Tensor, exponent: Tensor) -> Tensor:
    """The effective sample size of the draws of each row."""
    return 1 / (exponent * log_weights).softmax(0).square().sum(0)
