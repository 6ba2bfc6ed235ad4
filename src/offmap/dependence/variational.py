"""Estimators with a model of one variable given the other: BA from below, CLUB from above."""

from abc import ABC
from collections.abc import Sequence

from torch import Tensor

from offmap.dependence.conditional import GaussianConditional, GaussianMarginal
from offmap.dependence.estimator import Estimator, Width


class BA(Estimator):
    r"""The estimator of Barber and Agakov, $H(y) + \mathbb E_{p(x, y)} \log q(y \mid x)$.

    It is a lower bound if the entropy $H(y)$ is given. Otherwise a Gaussian $r(y)$ is fitted and
    $-\mathbb E \log r(y)$, which is at least $H(y)$, takes its place; the value is then not a bound.

    Args:
        x_width: Width of ``x``, or one width per term of a stack.
        y_width: Width of ``y``, or one width per term of a stack.
        hidden: Widths of the hidden layers of the networks for mean and variance.
        entropy: $H(y)$ in nats if it is known; the same for each term of a stack.

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
        self.conditional = GaussianConditional(self.x_widths, self.y_widths, hidden, learn_variance=True)
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


class _Contrast(Estimator, ABC):
    r"""Base of the CLUB estimators: $\mathbb E_{p(x, y)} \log q(y \mid x) - \mathbb E_{p(x) p(y)} \log q(y \mid x)$."""

    conditional: GaussianConditional

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self.conditional.contrast(x, y)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.conditional.log_density(x, y).mean(1)


class CLUB(_Contrast):
    r"""The contrastive log-ratio upper bound: a penalty that makes variables share less, not an estimate.

    $$\mathbb E_{p(x, y)} \log q(y \mid x) - \mathbb E_{p(x) p(y)} \log q(y \mid x)$$

    With $q$ the true conditional it exceeds the mutual information by
    $\mathbb E_{p(x)} \mathrm{KL}(p(y) \Vert p(y \mid x))$, which for Gaussians is more than the information
    itself. Before $q$ is fitted it is not a bound.

    Args:
        x_width: Width of ``x``, or one width per term of a stack.
        y_width: Width of ``y``, or one width per term of a stack.
        hidden: Widths of the hidden layers of the networks for mean and variance.

    Reference: Cheng et al., CLUB: A Contrastive Log-ratio Upper Bound of Mutual Information, arXiv:2006.12013.

    Example:
        >>> CLUB(3, 2).bound
        'upper'
    """

    bound = "upper"
    sound_to_maximise = False
    sound_to_minimise = True

    def __init__(self, x_width: Width, y_width: Width, *, hidden: Sequence[int] = (256,)) -> None:
        super().__init__(x_width, y_width)
        self.conditional = GaussianConditional(self.x_widths, self.y_widths, hidden, learn_variance=True)


class CLUBMean(_Contrast):
    r"""CLUB with $q(y \mid x) = \mathcal N(\mu(x), I)$: only the mean is learnt.

    At its minimum the mean of $y$ does not depend on $x$; nothing more follows. With the best $\mu$ it equals
    $\rho^2$ for two Gaussians of correlation $\rho$: above the information up to $\rho = 0.89$, and below it beyond.

    Args:
        x_width: Width of ``x``, or one width per term of a stack.
        y_width: Width of ``y``, or one width per term of a stack.
        hidden: Widths of the hidden layers of the network for the mean.

    Example:
        >>> CLUBMean(3, 2).bound is None
        True
    """

    bound = None
    sound_to_maximise = False
    sound_to_minimise = False

    def __init__(self, x_width: Width, y_width: Width, *, hidden: Sequence[int] = (256,)) -> None:
        super().__init__(x_width, y_width)
        self.conditional = GaussianConditional(self.x_widths, self.y_widths, hidden, learn_variance=False)
