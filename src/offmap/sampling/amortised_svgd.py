"""Amortised Stein variational gradient descent: trains a generator along the direction of SVGD."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from offmap.random_state import local_seed
from offmap.sampling.generator_sampler import GeneratorSampler
from offmap.sampling.log_density import LogDensity, require_log_density, require_usable
from offmap.sampling.stein import require_reached, score, svgd_direction
from offmap.sampling.training import adam, train_steps
from offmap.train import Batch, descend

# Samples of the trained generator at which the density must not be zero.
_CHECKED = 4096


@dataclass(kw_only=True, eq=False, repr=False)
class AmortisedSVGD(GeneratorSampler):
    r"""Draws from a density known up to a constant, with a generator trained along the SVGD direction of its samples.

    The generator's gradient is $-\mathbb{E}\, \partial_\theta h_\theta(\varepsilon)\, \phi(h_\theta(\varepsilon))$.

    Args:
        log_density: Maps points ``(n, d)``, a torch tensor, to the log density up to a constant, ``(n,)``.

    Attributes:
        generator_: The trained generator network.

    Reference: Feng, Wang and Liu, Learning to Draw Samples with Amortized Stein Variational Gradient Descent,
    arXiv:1707.06626.

    Example:
        >>> sampler = AmortisedSVGD(log_density=lambda x: -((x - 3.0) ** 2).sum(1) / 2, dim=1, hidden=(32,), steps=150,
        ...                         batch_size=64, lr=1e-2, random_state=0).fit()
        >>> round(float(sampler.sample(1000, random_state=0).mean()))
        3
    """

    log_density: LogDensity | None = None

    def fit(self) -> Self:
        """Trains the sampler.

        Raises:
            TrainingError: Samples of the trained generator lie where the density is zero.
        """
        seed = self._begin_fit()
        density = require_log_density(self.log_density)
        with local_seed(seed):
            self._build()
            require_usable(density, self.generator_.draw(64))
            optimizer = adam([self.generator_], self.lr)

            def objective(batch: Batch) -> dict[str, Tensor]:
                x = self.generator_.draw(self.batch_size)
                direction = svgd_direction(x.detach(), score(density, x))
                return {"generator": -(x * direction).sum(-1).mean()}

            step = descend(optimizer, objective)
            state = {"generator": self.generator_, "optimizer": optimizer}
            self.history_ = train_steps(lambda progress: step(()), self.steps, state, "AmortisedSVGD")
            with torch.no_grad():
                require_reached(density, self.generator_.draw(_CHECKED))
        return self

    def _build(self) -> None:
        self.generator_ = self._new_generator()
