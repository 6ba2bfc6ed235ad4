"""Estimators by a model of one variable given the other: BA from below, CLUB from above."""

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor

from offmap.dependence.conditional import GaussianConditional, GaussianMarginal
from offmap.dependence.estimator import Bound, Estimator, Width


class BA(Estimator):
    r"""The bound of Barber and Agakov, $H(y) + \mathbb E_{p(x, y)} \log q(y \mid x)$.

    It is a lower bound if the entropy $H(y)$ is known. Where it is not, a Gaussian $r(y)$ is fitted and
    $-\mathbb E \log r(y)$, which is at least $H(y)$, takes its place: then nothing is bound.

    Args:
        x_width: Width of ``x``, or of each ``x`` of the stack.
        y_width: Width of ``y``, or of each ``y`` of the stack.
        hidden: Widths of the hidden layers of the model's networks.
        entropy: $H(y)$ in nats, the same for each term of a stack, if it is known.

    Reference: Barber and Agakov, The IM Algorithm: A Variational Approach to Information Maximization, 2003.

    Example:
        >>> BA(3, 2).bound, BA(3, 2, entropy=2.84).bound
        (None, 'lower')
    """

    sound_to_minimise = False

    def __init__(
        self, x_width: Width, y_width: Width, *, hidden: Sequence[int] = (256,), entropy: float | None = None
    ) -> None:
        super().__init__(x_width, y_width)
        self.conditional = GaussianConditional(self.x_widths, self.y_widths, hidden, spread=True)
        self.entropy = entropy
        if entropy is None:
            self.marginal = GaussianMarginal(self.y_widths)
        self.bound = "lower" if entropy is not None else None
        self.sound_to_maximise = entropy is not None

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        given = self.conditional.log_density(x, y)
        return given - self.marginal.log_density(y) if self.entropy is None else given + self.entropy

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        loss = -self.conditional.log_density(x, y).mean(1)
        return loss - self.marginal.log_density(y).mean(1) if self.entropy is None else loss


class CLUB(Estimator):
    r"""The contrastive log-ratio upper bound, for making variables share less; not an estimate.

    $$\mathbb E_{p(x, y)} \log q(y \mid x) - \mathbb E_{p(x) p(y)} \log q(y \mid x)$$

    With $q$ the true conditional it exceeds the mutual information by
    $\mathbb E_{p(x)} \mathrm{KL}(p(y) \Vert p(y \mid x))$, which for Gaussians is more than the information
    itself; before $q$ is fitted it is no bound at all.

    Args:
        x_width: Width of ``x``, or of each ``x`` of the stack.
        y_width: Width of ``y``, or of each ``y`` of the stack.
        hidden: Widths of the hidden layers of the model's networks.

    Reference: Cheng et al., CLUB: A Contrastive Log-ratio Upper Bound of Mutual Information, arXiv:2006.12013.

    Example:
        >>> CLUB(3, 2).bound
        'upper'
    """

    bound: Bound | None = "upper"
    sound_to_maximise = False
    sound_to_minimise = True
    spread: ClassVar[bool] = True

    def __init__(self, x_width: Width, y_width: Width, *, hidden: Sequence[int] = (256,)) -> None:
        super().__init__(x_width, y_width)
        self.conditional = GaussianConditional(self.x_widths, self.y_widths, hidden, spread=self.spread)

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self.conditional.contrast(x, y)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.conditional.log_density(x, y).mean(1)


class CLUBMean(CLUB):
    r"""CLUB with $q(y \mid x) = \mathcal N(\mu(x), I)$: the spread is not learnt, as in the thesis's simulations.

    Its minimum says that the mean of $y$ does not depend on $x$, no more. With an ideal $\mu$ it comes to
    $\rho^2$ for two Gaussians of correlation $\rho$: above the information up to $\rho = 0.89$, and below it beyond.

    Args:
        x_width: Width of ``x``, or of each ``x`` of the stack.
        y_width: Width of ``y``, or of each ``y`` of the stack.
        hidden: Widths of the hidden layers of the model's network.

    Example:
        >>> CLUBMean(3, 2).bound is None
        True
    """

    bound = None
    sound_to_minimise = False
    spread = False
