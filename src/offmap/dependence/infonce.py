"""InfoNCE: which row of the batch is the partner?"""

import math
import warnings

from torch import Tensor

from offmap.dependence.critic_estimator import CriticEstimator

# Share of the ceiling above which the estimate is likely to be cut off by it.
NEAR_CEILING = 0.8


class SaturationWarning(UserWarning):
    """The estimate is close to the largest value that the estimator can return; the truth may be far higher."""


class InfoNCE(CriticEstimator):
    r"""A lower bound with low variance that cannot exceed the logarithm of the batch size; warns when it comes close.

    All pairs of a batch are scored. With the default critic, "joint", each pair passes through the network, which is
    slow; ``critic="separable"`` takes one matrix product and is about a hundred times as fast.

    $$\frac1n \sum_i \log \frac{e^{f(x_i, y_i)}}{\frac1n \sum_j e^{f(x_i, y_j)}} \le \log n$$

    Args:
        x_width: Width of ``x``, or one width per term of a stack.
        y_width: Width of ``y``, or one width per term of a stack.
        hidden: Widths of the critic's hidden layers.
        critic: "joint", "separable", "cosine", or a callable that makes a ``Critic`` from (x widths, y widths, hidden).

    Reference: van den Oord, Li and Vinyals, Representation Learning with Contrastive Predictive Coding,
    arXiv:1807.03748.

    Example:
        >>> import torch
        >>> x = torch.randn(64, 3)
        >>> InfoNCE(3, 3).value(x, x).item() < math.log(64)
        True
    """

    bound = "lower"
    sound_to_maximise = True
    sound_to_minimise = False

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        found = self._log_ratios(x, y)
        _warn_near_ceiling(float(found.detach().mean(-1).max()), x.shape[-2])
        return found

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._log_ratios(x, y).mean(1)

    def _log_ratios(self, x: Tensor, y: Tensor) -> Tensor:
        scores = self.critic.cross(*self.critic.embed(x, y))
        return scores.diagonal(dim1=1, dim2=2) - scores.logsumexp(2) + math.log(scores.shape[2])


def _warn_near_ceiling(largest: float, rows: int) -> None:
    ceiling = math.log(rows)
    if largest > NEAR_CEILING * ceiling:
        warnings.warn(
            f"InfoNCE is at {largest:.2f} nats and cannot exceed log({rows}) = {ceiling:.2f}; the truth may be far "
            f"higher. Use larger batches or another estimator",
            SaturationWarning,
            stacklevel=4,
        )
