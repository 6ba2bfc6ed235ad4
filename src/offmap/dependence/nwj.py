"""NWJ: a lower bound without a logarithm of a mean."""

from torch import Tensor

from offmap.dependence.ratio import DerangedEstimator


class NWJ(DerangedEstimator):
    r"""The lower bound of Nguyen, Wainwright and Jordan, unbiased but of large variance where much is shared.

    $$\mathbb E_{p(x, y)} f - \mathbb E_{p(x) p(y)} e^{f - 1}$$

    Args:
        x_width: Width of ``x``, or of each ``x`` of the stack.
        y_width: Width of ``y``, or of each ``y`` of the stack.
        hidden: Widths of the critic's hidden layers.
        critic: "joint", "separable" or "cosine", or what makes a ``Critic`` of (x widths, y widths, hidden).
        negatives: Other rows that each row is paired with: as many, or "all".

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
        true, others = self.scores(x, y)
        return true - (others - 1).exp().mean(2)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._pointwise(x, y).mean(1)
