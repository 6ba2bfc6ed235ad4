"""Base class of the samplers that draw with a trained generator."""

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from offmap import parameters, persist
from offmap.parameters import Count, Device, Natural, Positive
from offmap.random_state import draw_seed
from offmap.sampling.draws import require_count, torch_rng
from offmap.sampling.networks import Generator
from offmap.sampling.support import Support

# Rows per forward pass: few enough for the layers to stay in the cache of one core.
_CHUNK = 4096


@dataclass(kw_only=True, eq=False, repr=False)
class GeneratorSampler(BaseEstimator, ABC):
    """Draws samples in one forward pass of a generator network.

    Args:
        dim: Dimensions of a sample.
        noise_dim: Dimensions of the generator's input noise; ``dim + 4`` if None. A map between spaces of the same
            dimension folds, and samples crowd along the folds; extra dimensions blur them.
        hidden: Widths of the hidden layers of every network.
        scale: Standard deviation of the samples before training. Set it near the size of the region to be searched.
        steps: Training steps.
        batch_size: Samples per step; with contexts, samples times contexts.
        lr: Initial learning rate of the generator; it falls along half a cosine.
        random_state: Seed of the fit; the same seed gives the same sampler.
        device: Torch device, such as "cpu" or "cuda".

    Attributes:
        generator_: The trained generator network.
        context_dim_: Dimensions of the context, 0 if the sampler has none.
        history_: Mean of each loss over every 50 training steps, by name.
    """

    # A model file that lacks one of these is refused.
    always_fitted: ClassVar[frozenset[str]] = frozenset({"context_dim_", "history_"})

    dim: Count = 2
    noise_dim: Count | None = None
    hidden: tuple[Count, ...] = (128, 128)
    scale: Positive = 1.0
    steps: Count = 5000
    batch_size: Count = 512
    lr: Positive = 1e-3
    random_state: Natural | None = None
    device: Device = "cpu"

    def sample(self, n: int, context: ArrayLike | None = None, random_state: int | None = None) -> NDArray[np.float32]:
        """Draws samples in one forward pass. Threads may share a fitted sampler.

        Args:
            n: Number of samples, per context if there are several.
            context: One context ``(c,)`` or several ``(m, c)``, with as many columns as in ``fit``.
            random_state: Seed; without one, every call draws new samples.

        Returns:
            Samples ``(n, d)``, or ``(m, n, d)`` for several contexts.
        """
        check_is_fitted(self, "generator_")
        count, contexts = require_count("n", n), self._checked_context(context)
        rng = torch_rng(random_state, self.device)
        with torch.inference_mode():
            if contexts is None:
                return self._draw_in_chunks(count, rng)
            return self.generator_.draw(count, contexts, rng).cpu().numpy()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted sampler to one safetensors file, which ``offmap.load`` reads.

        The file does not hold functions such as ``log_density``; set them with ``set_params`` after loading.
        """
        check_is_fitted(self, "generator_")
        persist.save(self, path)

    @abstractmethod
    def _build(self) -> None:
        """Makes the networks from the parameters and ``context_dim_``; loading calls it too."""

    def _draw_in_chunks(self, n: int, rng: torch.Generator) -> NDArray[np.float32]:
        noise = self.generator_.noise.draw((n,), self.generator_.device, rng)
        samples = np.empty((n, self.dim), dtype=np.float32)
        for start in range(0, n, _CHUNK):
            samples[start : start + _CHUNK] = self.generator_(noise[start : start + _CHUNK]).cpu().numpy()
        return samples

    def _new_generator(self, support: Support | None = None, components: int = 1) -> Generator:
        return Generator(
            noise_dim=self.noise_dim or self.dim + 4,
            dim=self.dim,
            hidden=self.hidden,
            context_dim=self.context_dim_,
            support=support,
            scale=self.scale,
            residual=True,
            components=components,
        ).to(self.device)

    def _begin_fit(self, context: ArrayLike | None = None) -> int:
        """Checks the parameters, stores the dimensions of the context, and returns the seed of this fit."""
        parameters.check(self)
        self.context_dim_ = 0 if context is None else np.asarray(context).shape[-1]
        return draw_seed(self.random_state)

    def _checked_context(self, context: ArrayLike | None) -> Tensor | None:
        """The context as a tensor, or a ``ValueError`` if it does not fit the one of ``fit``."""
        width = self.context_dim_
        if (context is None) != (width == 0):
            raise ValueError(
                f"context must have {width} columns, as in fit; got none"
                if width
                else "context must be None: the sampler was fitted without one"
            )
        if context is None:
            return None
        contexts = torch.as_tensor(np.asarray(context, dtype=np.float32), device=self.device)
        if contexts.ndim not in (1, 2) or contexts.shape[-1] != width:
            raise ValueError(f"context must be ({width},) or (m, {width}); got shape {tuple(contexts.shape)}")
        if not contexts.isfinite().all():
            raise ValueError("context must hold finite numbers")
        return contexts
