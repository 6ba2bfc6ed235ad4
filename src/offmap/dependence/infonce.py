"""InfoNCE: which of the batch is the partner?"""

import math
import warnings

from torch import Tensor

from offmap.dependence.ratio import RatioEstimator

# The share of the ceiling above which the ceiling shows in the value.
NEAR = 0.8


class SaturationWarning(UserWarning):
    """An estimate so near to the largest value its estimator can give that the truth may lie far above."""


class InfoNCE(RatioEstimator):
    r"""A lower bound of low variance that cannot exceed the logarithm of the batch, and warns when it is near it.

    $$\frac1n \sum_i \log \frac{e^{f(x_i, y_i)}}{\frac1n \sum_j e^{f(x_i, y_j)}} \le \log n$$

    Args:
        x_width: Width of ``x``, or of each ``x`` of the stack.
        y_width: Width of ``y``, or of each ``y`` of the stack.
        hidden: Widths of the critic's hidden layers.
        critic: "joint", "separable" or "cosine", or what makes a ``Critic`` of (x widths, y widths, hidden).

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

    def pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        """What each row adds to the value; warns where that is near the logarithm of the batch."""
        found = super().pointwise(x, y)
        ceiling = math.log(x.shape[-2])
        largest = float(found.detach().mean(-1).max())
        if largest > NEAR * ceiling:
            warnings.warn(
                f"InfoNCE is at {largest:.2f} nats and cannot exceed log({x.shape[-2]}) = {ceiling:.2f}: the truth may "
                f"lie far above; take larger batches or another estimator",
                SaturationWarning,
                stacklevel=2,
            )
        return found

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        scores = self.critic.cross(*self.critic.embed(x, y))
        return scores.diagonal(dim1=1, dim2=2) - scores.logsumexp(2) + math.log(scores.shape[2])

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._pointwise(x, y).mean(1)
