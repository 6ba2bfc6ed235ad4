r"""Noise models: what the decoder's output says about the data, $\log p(x \mid z)$."""

import math
from abc import ABC, abstractmethod

from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits


class Noise(ABC):
    """Reads the decoder's output as a distribution over rows."""

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
    r"""$\log p(x \mid z) = -\tfrac12 \sum_i ((x_i - m_i)^2 + \log 2\pi)$ with unit variance, $m$ = the output."""

    def log_prob(self, X: Tensor, output: Tensor) -> Tensor:
        """Log density of each row, in nats."""
        squares = (X - output).square().flatten(1)
        return -0.5 * (squares.sum(1) + squares.shape[1] * math.log(2 * math.pi))

    def mean(self, output: Tensor) -> Tensor:
        """The output itself."""
        return output


NOISES: dict[str, type[Noise]] = {"bernoulli": Bernoulli, "gaussian": Gaussian}
