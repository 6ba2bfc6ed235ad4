"""Stein variational gradient descent with a fixed set of particles."""

import os
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.optim import Adagrad

from offmap import parameters, persist
from offmap.parameters import Count, Device, Natural, Positive
from offmap.progress import bar
from offmap.random_state import as_generator, draw_seed, local_seed
from offmap.sampling.draws import require_count
from offmap.sampling.log_density import LogDensity, require_log_density, require_usable
from offmap.sampling.stein import require_reached, score, svgd_direction


@dataclass(kw_only=True, eq=False, repr=False)
class SVGD(BaseEstimator):
    """Moves a fixed set of particles to a density known up to a constant; samples are drawn from the particles.

    Args:
        log_density: Maps points ``(n, d)``, a torch tensor, to the log density up to a constant, ``(n,)``.
        dim: Dimensions of a particle.
        particles: Number of particles, which is also the number of distinct samples.
        scale: Standard deviation of the initial particles.
        steps: Steps that the particles are moved for.
        lr: Learning rate of Adagrad.
        random_state: Seed of the fit; the same seed gives the same particles.
        device: Torch device, such as "cpu" or "cuda".

    Attributes:
        particles_: The particles after the last step, ``(particles, dim)``.

    Reference: Liu and Wang, Stein Variational Gradient Descent, arXiv:1608.04471.

    Example:
        >>> sampler = SVGD(log_density=lambda x: -((x - 3.0) ** 2).sum(1) / 2, dim=1, steps=200, lr=0.5, particles=100,
        ...                random_state=0).fit()
        >>> round(float(sampler.particles_.mean()))
        3
    """

    # A model file that lacks this is refused.
    always_fitted: ClassVar[frozenset[str]] = frozenset({"particles_"})

    log_density: LogDensity | None = None
    dim: Count = 2
    particles: Count = 256
    scale: Positive = 1.0
    steps: Count = 1000
    lr: Positive = 0.1
    random_state: Natural | None = None
    device: Device = "cpu"

    def fit(self) -> Self:
        """Moves the particles to the density.

        Raises:
            TrainingError: Particles ended where the density is zero; there, no gradient moves them.
        """
        parameters.check(self)
        density = require_log_density(self.log_density)
        with local_seed(draw_seed(self.random_state)):
            x = self.scale * torch.randn(self.particles, self.dim, device=self.device)
            require_usable(density, x)
            moved = self._moved(x, density)
            require_reached(density, moved)
        self.particles_ = moved.cpu().numpy()
        return self

    def sample(self, n: int, random_state: int | None = None) -> NDArray[np.float32]:
        """Draws ``n`` particles; each is repeated as often as the others, up to one, if ``n`` exceeds their number."""
        check_is_fitted(self, "particles_")
        whole, rest = divmod(require_count("n", n), len(self.particles_))
        rows = [*[np.arange(len(self.particles_))] * whole]
        rows.append(as_generator(random_state).permutation(len(self.particles_))[:rest])
        return self.particles_[np.concatenate(rows)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the particles to one safetensors file, which ``offmap.load`` reads; the log density is not saved."""
        check_is_fitted(self, "particles_")
        persist.save(self, path)

    def _check_fitted(self) -> None:
        """Raises an error unless particles can be drawn; ``load`` calls it."""
        particles = self.particles_
        if not isinstance(particles, np.ndarray) or particles.shape[1:] != (self.dim,) or not len(particles):
            raise ValueError(f"particles_ must be an array with {self.dim} columns")

    def _moved(self, x: Tensor, log_density: LogDensity) -> Tensor:
        optimizer = Adagrad([x], lr=self.lr, eps=1e-6, maximize=True)
        with bar("SVGD", total=self.steps) as shown:
            for _ in range(self.steps):
                x.grad = svgd_direction(x, score(log_density, x))
                optimizer.step()
                shown.advance()
        return x
