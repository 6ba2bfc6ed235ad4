"""The NWJ lower bound."""

from torch import Tensor

from offmap.dependence.critic_estimator import DerangedEstimator


class NWJ(DerangedEstimator):
    r"""The lower bound of Nguyen, Wainwright and Jordan: unbiased, with high variance when the information is large.

    $$\mathbb E_{p(x, y)} f - \mathbb E_{p(x) p(y)} e^{f - 1}$$

    Args:
        x_width: Width of ``x``, or one width per term of a stack.
        y_width: Width of ``y``, or one width per term of a stack.
        hidden: Widths of the critic's hidden layers.
        critic: "joint", "separable", "cosine", or a callable that makes a ``Critic`` from (x widths, y widths, hidden).
        n_negatives: Negatives per row: a number, or "all" for every other row of the batch.

    Reference: Nguyen, Wainwright and Jordan, Estimating Divergence Functionals and the Likelihood Ratio by Convex Risk
    Minimization, arXiv:0809.0853.

    Example:
        >>> import torch
        >>> NWJ(3, 2, hidden=(16,)).value(torch.zeros(8, 3), torch.zeros(8, 2)).shape
        torch.Size([])
    """

    bound = "lower"
    sound_to_maximise = True
    sound_to_minimise = False

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        true, negatives = self.scores(x, y)
        return true - (negatives - 1).exp().mean(2)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._pointwise(x, y).mean(1)
