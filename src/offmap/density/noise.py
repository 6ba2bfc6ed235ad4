r"""Noise models: what the decoder's output says about the data, $\log p(x \mid z)$."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

_LOG_TWO_PI = math.log(2 * math.pi)


class Noise(nn.Module, ABC):
    """Reads the decoder's output as a distribution over rows of one shape.

    Args:
        shape: Shape of a row: ``(d,)`` or ``(c, h, w)``.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def observed(self, X: Tensor) -> Tensor:
        """The rows as the model takes them: themselves, unless the noise model blurs them."""
        return X

    @property
    def scale(self) -> Tensor:
        """The standard deviation that residuals are measured by: 1, unless it is learnt."""
        return torch.ones(())

    @abstractmethod
    def log_prob(self, X: Tensor, output: Tensor) -> Tensor:
        """Log density of each row, in nats."""

    @abstractmethod
    def mean(self, output: Tensor) -> Tensor:
        """The expected row."""


class Bernoulli(Noise):
    r"""$\log p(x \mid z) = \sum_i x_i \log \pi_i + (1 - x_i) \log(1 - \pi_i)$ with $\pi$ = sigmoid of the output.

    The rows hold intensities in [0, 1], which count as probabilities. Their entropy then bounds the score from below,
    so that images of pure black and white can look likelier than any training image. Other values are impossible.
    """

    def log_prob(self, X: Tensor, output: Tensor) -> Tensor:
        """Log density of each row, in nats."""
        log_prob = -binary_cross_entropy_with_logits(output, X, reduction="none").flatten(1).sum(1)
        # The formula would reward them: it grows without bound where a value is above 1.
        impossible = ((X < 0) | (X > 1)).flatten(1).any(1)
        return log_prob.masked_fill(impossible, -math.inf)

    def mean(self, output: Tensor) -> Tensor:
        """The probabilities."""
        return output.sigmoid()


class Gaussian(Noise):
    r"""$\log p(x \mid z) = -\tfrac12 \sum_i ((x_i - m_i)^2 + \log 2\pi)$ with unit variance, $m$ = the output.

    Against intensities in [0, 1] a unit variance is wide: the model is content with blurred means, and on small images
    the latent code may carry nothing at all.
    """

    def log_prob(self, X: Tensor, output: Tensor) -> Tensor:
        """Log density of each row, in nats."""
        squares = (X - output).square().flatten(1)
        return -0.5 * (squares.sum(1) + squares.shape[1] * _LOG_TWO_PI)

    def mean(self, output: Tensor) -> Tensor:
        """The output itself."""
        return output


class LearnedGaussian(Gaussian):
    r"""A Gaussian whose width is learnt: $-\sum_i \left(\frac{(x_i - m_i)^2}{2 \sigma_i^2} + \log \sigma_i\right)$ and
    the constant $-\tfrac{d}{2} \log 2\pi$.

    There is one $\sigma$ a feature, or one for all pixels of an image. It stays above a floor: what the model knows
    exactly, such as a constant feature, must not make the likelihood infinite.

    Reference: Rybkin, Daniilidis and Levine, Simple and Effective VAE Training with Calibrated Decoders,
    arXiv:2006.13202.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(shape)
        features = len(shape) == 1
        self.start = 1.0 if features else _SPREAD_OF_PIXELS
        self.raw = nn.Parameter(torch.zeros(shape if features else (1, 1, 1)))

    @property
    def scale(self) -> Tensor:
        """The standard deviations; before training, about those of the data."""
        return _FLOOR + (self.start - _FLOOR) * (_PACE * self.raw).exp()

    def log_prob(self, X: Tensor, output: Tensor) -> Tensor:
        """Log density of each row, in nats."""
        scale = self.scale
        squares = ((X - output) / scale).square().flatten(1)
        return -0.5 * (squares.sum(1) + squares.shape[1] * _LOG_TWO_PI) - scale.log().expand(self.shape).sum()


class QuantizedGaussian(Gaussian):
    r"""A unit Gaussian on pixels whose rounding to 256 values is undone by uniform noise: $(255 x + u) / 256$.

    While training the noise $u$ is drawn anew for each row; to score, it is one image drawn once, so that a row always
    gets the same score.
    """

    offset: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(shape)
        self.register_buffer("offset", torch.rand(shape))

    def observed(self, X: Tensor) -> Tensor:
        """The rows between the steps of their rounding."""
        return (255 * X + (torch.rand_like(X) if self.training else self.offset)) / 256


# Adam moves each parameter by about lr a step: at the pace of a weight, σ would take thousands of steps to its place.
_PACE = 10.0
_FLOOR = 0.01
_SPREAD_OF_PIXELS = 0.25

NOISES: dict[str, Callable[[tuple[int, ...]], Noise]] = {
    "bernoulli": Bernoulli,
    "gaussian": Gaussian,
    "gaussian_learned": LearnedGaussian,
    "quantized_gaussian": QuantizedGaussian,
}
# Noise models of intensities, which take values in [0, 1] and no others.
OF_INTENSITIES = ("bernoulli", "quantized_gaussian")


def require_intensities(noise: str, X: Tensor, argument: str = "X") -> None:
    """Refuses rows that the noise model gives no density to.

    Args:
        noise: Name of the noise model.
        X: Rows.
        argument: What the user calls them.
    """
    if noise in OF_INTENSITIES and len(X) and not (X.min() >= 0 and X.max() <= 1):
        advice = 'use noise="gaussian_learned" or rescale them'
        raise ValueError(f'noise="{noise}" needs values of {argument} in [0, 1]; {advice}')
