r"""Likelihoods: how the decoder's output defines $\log p(x \mid z)$."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from offmap.parameters import Limit

_LOG_TWO_PI = math.log(2 * math.pi)


class Likelihood(nn.Module, ABC):
    """Turns the decoder's output into a distribution over rows of one shape.

    Args:
        shape: Shape of a row: ``(d,)`` or ``(c, h, w)``.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def observed(self, X: Tensor) -> Tensor:
        """The rows as the network sees them: unchanged, unless the likelihood dequantizes them."""
        return X

    @property
    def scale(self) -> Tensor:
        """The standard deviation that residuals are divided by: 1, unless it is learned."""
        return torch.ones(())

    @abstractmethod
    def log_prob(self, X: Tensor, output: Tensor) -> Tensor:
        """Log density of each row, in nats."""

    @abstractmethod
    def mean(self, output: Tensor) -> Tensor:
        """The expected row."""


class Bernoulli(Likelihood):
    r"""$\log p(x \mid z) = \sum_i x_i \log \pi_i + (1 - x_i) \log(1 - \pi_i)$ with $\pi$ = sigmoid of the output.

    Rows hold intensities in [0, 1], which are treated as probabilities. Their entropy bounds the score from below, so
    images of pure black and white can look likelier than any training image. Values outside [0, 1] have density 0.
    """

    def log_prob(self, X: Tensor, output: Tensor) -> Tensor:
        """Log density of each row, in nats."""
        log_prob = -binary_cross_entropy_with_logits(output, X, reduction="none").flatten(1).sum(1)
        # The formula would reward values above 1: it grows without bound there.
        impossible = ((X < 0) | (X > 1)).flatten(1).any(1)
        return log_prob.masked_fill(impossible, -math.inf)

    def mean(self, output: Tensor) -> Tensor:
        """The probabilities."""
        return output.sigmoid()


class Gaussian(Likelihood):
    r"""$\log p(x \mid z) = -\tfrac12 \sum_i ((x_i - m_i)^2 + \log 2\pi)$ with unit variance, $m$ = the output.

    For intensities in [0, 1] a unit variance is wide: reconstructions are blurred, and on small images the latent code
    may carry no information at all.
    """

    def log_prob(self, X: Tensor, output: Tensor) -> Tensor:
        """Log density of each row, in nats."""
        squares = (X - output).square().flatten(1)
        return -0.5 * (squares.sum(1) + squares.shape[1] * _LOG_TWO_PI)

    def mean(self, output: Tensor) -> Tensor:
        """The output itself."""
        return output


class LearnedGaussian(Gaussian):
    r"""A Gaussian with learned width: $-\sum_i \left(\frac{(x_i - m_i)^2}{2 \sigma_i^2} + \log \sigma_i\right)$ and
    the constant $-\tfrac{d}{2} \log 2\pi$.

    There is one $\sigma$ per feature, or one for all pixels of an image. It is bounded below, so that a feature that is
    predicted exactly, such as a constant one, does not make the likelihood infinite.

    Reference: Rybkin, Daniilidis and Levine, Simple and Effective VAE Training with Calibrated Decoders,
    arXiv:2006.13202.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(shape)
        features = len(shape) == 1
        self.start = 1.0 if features else _INITIAL_PIXEL_SCALE
        self.raw = nn.Parameter(torch.zeros(shape if features else (1, 1, 1)))

    @property
    def scale(self) -> Tensor:
        """The standard deviations; before training, roughly those of the data."""
        return _SMALLEST_SCALE + (self.start - _SMALLEST_SCALE) * (_SPEED * self.raw).exp()

    def log_prob(self, X: Tensor, output: Tensor) -> Tensor:
        """Log density of each row, in nats."""
        scale = self.scale
        squares = ((X - output) / scale).square().flatten(1)
        return -0.5 * (squares.sum(1) + squares.shape[1] * _LOG_TWO_PI) - scale.log().expand(self.shape).sum()


class QuantizedGaussian(Gaussian):
    r"""A unit Gaussian on dequantized pixels: uniform noise undoes the rounding to 256 values, $(255 x + u) / 256$.

    In training the noise $u$ is drawn anew for each row. In scoring it is one image, drawn once, so that a row always
    gets the same score.
    """

    offset: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(shape)
        self.register_buffer("offset", torch.rand(shape))

    def observed(self, X: Tensor) -> Tensor:
        """The dequantized rows."""
        return (255 * X + (torch.rand_like(X) if self.training else self.offset)) / 256


# Adam moves each parameter by about lr per step: without the factor, σ would need thousands of steps to settle.
_SPEED = 10.0
_SMALLEST_SCALE = 0.01
_INITIAL_PIXEL_SCALE = 0.25

LIKELIHOODS: dict[str, Callable[[tuple[int, ...]], Likelihood]] = {
    "gaussian_learned": LearnedGaussian,
    "gaussian": Gaussian,
    "bernoulli": Bernoulli,
    "quantized_gaussian": QuantizedGaussian,
}
LikelihoodName = Annotated[str, Limit(f"among {', '.join(map(repr, LIKELIHOODS))}", LIKELIHOODS.__contains__)]
# Likelihoods of intensities, which are defined on [0, 1] only.
OF_INTENSITIES = ("bernoulli", "quantized_gaussian")


def require_intensities(likelihood: str, X: Tensor, argument: str = "X") -> None:
    """Raises a ``ValueError`` if rows lie outside the range of the likelihood.

    Args:
        likelihood: Name of the likelihood.
        X: Rows.
        argument: The argument that the rows came from.
    """
    if likelihood in OF_INTENSITIES and len(X) and not (X.min() >= 0 and X.max() <= 1):
        advice = 'use likelihood="gaussian_learned" or rescale them'
        raise ValueError(f'likelihood="{likelihood}" needs values of {argument} in [0, 1]; {advice}')
