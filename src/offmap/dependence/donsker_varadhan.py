"""Estimators in the Donsker–Varadhan form of the divergence: MINE, and SMILE, which clips the ratio."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from offmap.dependence.critic_estimator import DerangedEstimator, pair_loss
from offmap.dependence.critics import Critic
from offmap.dependence.estimator import Width


class MINE(DerangedEstimator):
    r"""The Donsker–Varadhan lower bound; a running mean removes the bias from the gradient of its logarithm.

    $$\mathbb E_{p(x, y)} f - \log \mathbb E_{p(x) p(y)} e^f$$

    Args:
        x_width: Width of ``x``, or one width per term of a stack.
        y_width: Width of ``y``, or one width per term of a stack.
        hidden: Widths of the critic's hidden layers.
        critic: "joint", "separable", "cosine", or a callable that makes a ``Critic`` from (x widths, y widths, hidden).
        n_negatives: Negatives per row: a number, or "all" for every other row of the batch.
        decay: Share of the running mean that each batch keeps; 0 uses the bound of the batch alone.

    Reference: Belghazi et al., Mutual Information Neural Estimation, arXiv:1801.04062.

    Example:
        >>> MINE(3, 2, hidden=(16,)).value(torch.zeros(8, 3), torch.zeros(8, 2)).shape
        torch.Size([])
    """

    bound = "lower"
    sound_to_maximise = True
    sound_to_minimise = False
    log_mean: Tensor

    def __init__(
        self,
        x_width: Width,
        y_width: Width,
        *,
        hidden: Sequence[int] = (256, 256),
        critic: str | Callable[..., Critic] = "joint",
        n_negatives: int | str = 1,
        decay: float = 0.9,
    ) -> None:
        super().__init__(x_width, y_width, hidden=hidden, critic=critic, n_negatives=n_negatives)
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be between 0 and 1, 0 included; got {decay!r}")
        self.decay = decay
        self.register_buffer("log_mean", torch.full((len(self.x_widths),), torch.nan))

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return donsker_varadhan(*self.scores(x, y))

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        true, negatives = self.scores(x, y)
        present = _log_mean_exp(negatives)
        # The gradient of log E e^f is that of E e^f divided by its mean, which one small batch estimates badly.
        running = self._running_mean(present.detach())
        weighted = (present - running).exp()
        return weighted - weighted.detach() + present.detach() - true.mean(1)

    def _running_mean(self, present: Tensor) -> Tensor:
        """Logarithm of the running mean, updated in training mode."""
        kept = torch.where(self.log_mean.isnan(), present, self.log_mean) + math.log(max(self.decay, 1e-30))
        running = torch.logaddexp(kept, present + math.log1p(-self.decay))
        if self.training:
            self.log_mean.copy_(running)
        return running


class SMILE(DerangedEstimator):
    r"""Trains a critic like ``JS`` and reads it in the Donsker–Varadhan form with a clipped ratio, for less variance.

    $$\mathbb E_{p(x, y)} f - \log \mathbb E_{p(x) p(y)} \mathrm{clip}(e^f, e^{-\tau}, e^{\tau})$$

    Args:
        x_width: Width of ``x``, or one width per term of a stack.
        y_width: Width of ``y``, or one width per term of a stack.
        hidden: Widths of the critic's hidden layers.
        critic: "joint", "separable", "cosine", or a callable that makes a ``Critic`` from (x widths, y widths, hidden).
        n_negatives: Negatives per row: a number, or "all" for every other row of the batch.
        clip: $\tau$; lower values lower the variance and raise the bias.

    Reference: Song and Ermon, Understanding the Limitations of Variational Mutual Information Estimators,
    arXiv:1910.06222.

    Example:
        >>> SMILE(3, 2, hidden=(16,)).value(torch.zeros(8, 3), torch.zeros(8, 2)).shape
        torch.Size([])
    """

    bound = None
    sound_to_maximise = False
    sound_to_minimise = False

    def __init__(
        self,
        x_width: Width,
        y_width: Width,
        *,
        hidden: Sequence[int] = (256, 256),
        critic: str | Callable[..., Critic] = "joint",
        n_negatives: int | str = 1,
        clip: float = 5.0,
    ) -> None:
        super().__init__(x_width, y_width, hidden=hidden, critic=critic, n_negatives=n_negatives)
        if not clip > 0:
            raise ValueError(f"clip must be above 0; got {clip!r}")
        self.clip = clip

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        true, negatives = self.scores(x, y)
        return donsker_varadhan(true, negatives.clamp(-self.clip, self.clip))

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return pair_loss(*self.scores(x, y))


def donsker_varadhan(true: Tensor, negatives: Tensor) -> Tensor:
    r"""Contribution of each row to $\mathbb E f - \log \mathbb E e^{f'}$; the mean over rows is that value.

    A row contributes its own score and, to first order, its part in the logarithm: $f_i - \log Z - e^{f'_i}/Z + 1$.
    """
    log_mean = _log_mean_exp(negatives)[:, None]
    share = (negatives - log_mean.unsqueeze(2)).exp().mean(2)
    return true - log_mean - share + 1


def _log_mean_exp(scores: Tensor) -> Tensor:
    return scores.flatten(1).logsumexp(1) - math.log(scores[0].numel())
