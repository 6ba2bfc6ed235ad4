"""Estimators by the Donsker–Varadhan form of the divergence: MINE, and SMILE, which clips it."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from offmap.dependence.critics import Critic
from offmap.dependence.estimator import Width
from offmap.dependence.js import classification_loss
from offmap.dependence.ratio import DerangedEstimator


class MINE(DerangedEstimator):
    r"""The Donsker–Varadhan lower bound, with a running mean to unbias the gradient of its logarithm.

    $$\mathbb E_{p(x, y)} f - \log \mathbb E_{p(x) p(y)} e^f$$

    Args:
        x_width: Width of ``x``, or of each ``x`` of the stack.
        y_width: Width of ``y``, or of each ``y`` of the stack.
        hidden: Widths of the critic's hidden layers.
        critic: "joint", "separable" or "cosine", or what makes a ``Critic`` of (x widths, y widths, hidden).
        negatives: Other rows that each row is paired with: as many, or "all".
        memory: Share of the running mean that a batch leaves as it was; 0 trains on the bound of the batch itself.

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
        negatives: int | str = 1,
        memory: float = 0.9,
    ) -> None:
        super().__init__(x_width, y_width, hidden=hidden, critic=critic, negatives=negatives)
        if not 0 <= memory < 1:
            raise ValueError(f"memory must be between 0 and 1, 0 included; got {memory!r}")
        self.memory = memory
        self.register_buffer("log_mean", torch.full((len(self.x_widths),), torch.nan))

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return donsker_varadhan(*self.scores(x, y))

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        true, others = self.scores(x, y)
        present = _log_mean_exp(others)
        # The gradient of log E e^f is that of E e^f over its mean, which one small batch tells badly.
        running = self._remembered(present.detach())
        weighted = (present - running).exp()
        return weighted - weighted.detach() + present.detach() - true.mean(1)

    def _remembered(self, present: Tensor) -> Tensor:
        """The logarithm of the running mean, moved on by a batch of training."""
        kept = torch.where(self.log_mean.isnan(), present, self.log_mean) + math.log(max(self.memory, 1e-30))
        running = torch.logaddexp(kept, present + math.log1p(-self.memory))
        if self.training:
            self.log_mean.copy_(running)
        return running


class SMILE(DerangedEstimator):
    r"""A critic trained to tell pairs, read by a Donsker–Varadhan form with its ratio clipped for less variance.

    $$\mathbb E_{p(x, y)} f - \log \mathbb E_{p(x) p(y)} \mathrm{clip}(e^f, e^{-\tau}, e^{\tau})$$

    Args:
        x_width: Width of ``x``, or of each ``x`` of the stack.
        y_width: Width of ``y``, or of each ``y`` of the stack.
        hidden: Widths of the critic's hidden layers.
        critic: "joint", "separable" or "cosine", or what makes a ``Critic`` of (x widths, y widths, hidden).
        negatives: Other rows that each row is paired with: as many, or "all".
        clip: $\tau$.

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
        negatives: int | str = 1,
        clip: float = 5.0,
    ) -> None:
        super().__init__(x_width, y_width, hidden=hidden, critic=critic, negatives=negatives)
        if not clip > 0:
            raise ValueError(f"clip must be above 0; got {clip!r}")
        self.clip = clip

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        true, others = self.scores(x, y)
        return donsker_varadhan(true, others.clamp(-self.clip, self.clip))

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return classification_loss(*self.scores(x, y))


def donsker_varadhan(true: Tensor, others: Tensor) -> Tensor:
    r"""What each row adds to $\mathbb E f - \log \mathbb E e^{f'}$, whose mean over the rows is the form itself.

    A row counts by its own score and by its part in the logarithm, to the first order: $f_i - \log Z - e^{f'_i}/Z + 1$.
    """
    log_mean = _log_mean_exp(others)[:, None]
    share = (others - log_mean.unsqueeze(2)).exp().mean(2)
    return true - log_mean - share + 1


def _log_mean_exp(scores: Tensor) -> Tensor:
    return scores.flatten(1).logsumexp(1) - math.log(scores[0].numel())
