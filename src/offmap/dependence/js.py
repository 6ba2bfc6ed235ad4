"""A classifier of pairs, whose logit is the logarithm of the density ratio."""

from torch import Tensor
from torch.nn.functional import softplus

from offmap.dependence.ratio import DerangedEstimator


class JS(DerangedEstimator):
    r"""A critic trained to tell true pairs from others, read as the log ratio of densities that it then is.

    It minimises $\mathbb E_{p(x, y)} \log(1 + e^{-f}) + \mathbb E_{p(x) p(y)} \log(1 + e^f)$, whose minimum is at
    $f = \log \frac{p(x, y)}{p(x) p(y)}$ (the Jensen–Shannon divergence, as in a GAN), and estimates the mutual
    information by $\mathbb E_{p(x, y)} f$: near the truth where the bounds are far below it, but itself no bound.

    Args:
        x_width: Width of ``x``, or of each ``x`` of the stack.
        y_width: Width of ``y``, or of each ``y`` of the stack.
        hidden: Widths of the critic's hidden layers.
        critic: "joint", "separable" or "cosine", or what makes a ``Critic`` of (x widths, y widths, hidden).
        negatives: Other rows that each row is paired with: as many, or "all".

    Reference: Letizia, Novello and Tonello, Mutual Information Estimation via f-Divergence and Data Derangements,
    arXiv:2305.20025.

    Example:
        >>> import torch
        >>> JS(3, 2, hidden=(16,)).value(torch.zeros(8, 3), torch.zeros(8, 2)).shape
        torch.Size([])
    """

    bound = None
    sound_to_maximise = False
    sound_to_minimise = False

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self.critic.score(*self.critic.embed(x, y))

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return classification_loss(*self.scores(x, y))


def classification_loss(true: Tensor, others: Tensor) -> Tensor:
    """The logistic loss ``(terms,)`` of telling true pairs ``(terms, n)`` from others ``(terms, n, negatives)``."""
    return softplus(-true).mean(1) + softplus(others).mean((1, 2))
