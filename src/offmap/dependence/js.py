"""The Jensen–Shannon estimator: a classifier of pairs whose logit is the log density ratio."""

from torch import Tensor

from offmap.dependence.critic_estimator import DerangedEstimator, pair_loss


class JS(DerangedEstimator):
    r"""Trains a critic to tell true pairs from negatives and reads its logit as the log density ratio.

    The critic minimises $\mathbb E_{p(x, y)} \log(1 + e^{-f}) + \mathbb E_{p(x) p(y)} \log(1 + e^f)$, whose minimum is
    at $f = \log \frac{p(x, y)}{p(x) p(y)}$ (the Jensen–Shannon divergence, as in a GAN). The mutual information is
    estimated by $\mathbb E_{p(x, y)} f$: close to the truth where lower bounds are far below it, but not a bound.

    Args:
        x_width: Width of ``x``, or one width per term of a stack.
        y_width: Width of ``y``, or one width per term of a stack.
        hidden: Widths of the critic's hidden layers.
        critic: "joint", "separable", "cosine", or a callable that makes a ``Critic`` from (x widths, y widths, hidden).
        n_negatives: Negatives per row: a number, or "all" for every other row of the batch.

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
        return pair_loss(*self.scores(x, y))
