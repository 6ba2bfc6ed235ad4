"""What samplers with a generator share: drawing in one forward pass, saving, and the schedule of training."""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from offmap import parameters, persist
from offmap.nets import frozen
from offmap.parameters import Count, Positive
from offmap.random_state import draw_seed, local_seed
from offmap.sampling.averaging import Average
from offmap.sampling.networks import Generator
from offmap.sampling.references import Support
from offmap.train import Batch, History, train

Terms = dict[str, Tensor]
Turns = tuple[Callable[[float], Terms], Callable[[], Terms]]
# Rows of a forward pass: small enough for the layers to stay in the cache of a core.
_CHUNK = 4096
# Steps between two moves of the progress bar, and two entries of the history.
_STEPS_AN_EPOCH = 50
# Where the step size ends, as a share of where it begins.
_LAST_LR = 0.02


@dataclass(frozen=True)
class Rounds:
    """So many batches without rows: the players of a sampler draw their own."""

    count: int

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Batch]:
        return iter([()] * self.count)


@dataclass(kw_only=True, eq=False, repr=False)
class OnePassSampler(BaseEstimator, ABC):
    """A generator that turns noise into samples.

    Args:
        dim: Dimensions of a sample.
        noise: Width of the noise, four more than that of a sample if absent: where a map between spaces of one width
            folds, samples crowd along the fold, and wider noise blurs it.
        hidden: Widths of the hidden layers of every network.
        scale: Spread of the samples before training; put it near the size of the region to be searched.
        steps: Steps of training.
        batch_size: Samples a step; with contexts, samples times contexts.
        lr: Step size of the generator at the start; it falls along half a cosine.
        random_state: Seed; with one, the same call gives the same sampler.
        device: Where torch works, such as "cpu" or "cuda".
    """

    # What every fitted one knows: a file without it is refused.
    always_fitted: ClassVar[frozenset[str]] = frozenset({"context_width_", "history_"})

    dim: Count = 2
    noise: Count | None = None
    hidden: tuple[Count, ...] = (128, 128)
    scale: Positive = 1.0
    steps: Count = 5000
    batch_size: Count = 512
    lr: Positive = 1e-3
    random_state: int | None = None
    device: str = "cpu"

    def sample(self, n: int, context: ArrayLike | None = None, random_state: int | None = None) -> NDArray[np.float32]:
        """Draws samples in one forward pass.

        Args:
            n: How many, for each context.
            context: ``(c,)`` for one context, ``(m, c)`` for several, as many numbers wide as those of ``fit``.
            random_state: Seed; without one, every call draws anew.

        Returns:
            Samples ``(n, d)``, or ``(m, n, d)`` for several contexts.
        """
        check_is_fitted(self, "generator_")
        if n < 1:
            raise ValueError(f"n must be at least 1; got {n}")
        given = self._context(context)
        seed = int(np.random.default_rng(random_state).integers(2**31))
        with local_seed(seed), torch.inference_mode():
            if given is None:
                return self._draw_many(n)
            return self.generator_.draw(n, given).cpu().numpy()

    def _draw_many(self, n: int) -> NDArray[np.float32]:
        noise = torch.randn(n, self.generator_.noise, device=self.device)
        samples = np.empty((n, self.dim), dtype=np.float32)
        for start in range(0, n, _CHUNK):
            samples[start : start + _CHUNK] = self.generator_(noise[start : start + _CHUNK]).cpu().numpy()
        return samples

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted sampler to one safetensors file; ``offmap.load`` reads it.

        Functions among its parameters are not written; ``set_params`` gives them back to a sampler that was loaded.
        """
        check_is_fitted(self, "generator_")
        persist.save(self, path)

    @abstractmethod
    def _build(self) -> None:
        """Makes the networks from the parameters and the width of the context; ``load`` calls it too."""

    def _box(self) -> Support | None:
        """The box that samples lie in, if there is one."""
        return None

    def _new_generator(self) -> Generator:
        return Generator(
            noise=self.noise or self.dim + 4,
            outputs=self.dim,
            hidden=self.hidden,
            context=self.context_width_,
            support=self._box(),
            scale=self.scale,
            residual=True,
        ).to(self.device)

    def _start(self, context: ArrayLike | None = None) -> int:
        """Checks the parameters, notes the width of the context, and returns the seed of this fit."""
        parameters.check(self)
        self.context_width_ = 0 if context is None else np.asarray(context).shape[-1]
        return draw_seed(self.random_state)

    def _context(self, context: ArrayLike | None) -> Tensor | None:
        """A context that has passed the door."""
        width = self.context_width_
        if (context is None) != (width == 0):
            raise ValueError(f"context must be {f'{width} numbers wide, as in fit' if width else 'absent, as in fit'}")
        if context is None:
            return None
        given = torch.as_tensor(np.asarray(context, dtype=np.float32), device=self.device)
        if given.ndim not in (1, 2) or given.shape[-1] != width:
            raise ValueError(f"context must be ({width},) or (m, {width}); got shape {tuple(given.shape)}")
        if not given.isfinite().all():
            raise ValueError("context must hold finite numbers")
        return given

    def _adam(self, networks: list[nn.Module], lr: float) -> Optimizer:
        """The papers' Adam, with a short memory of the gradient's direction, since the opponent moves too."""
        weights = [weight for network in networks for weight in network.parameters()]
        return Adam(weights, lr=lr, betas=(0.5, 0.999), fused=True)

    def _duel(self, critic: nn.Module, judge: Optimizer, mover: Optimizer, turns: Turns, decay: float) -> None:
        """Trains generator and critic against each other; the generator ends as the running mean of its weights.

        Args:
            critic: The opponent.
            judge: Its optimiser.
            mover: The generator's.
            turns: What the critic does, given the share of the steps that are over, and what the generator does then.
            decay: Share of the past in the running mean.
        """
        judged, moved = turns
        average = Average(self.generator_, decay)

        def play(share: float) -> Terms:
            terms = judged(share)
            with frozen(critic):
                terms |= moved()
            average.update()
            return terms

        state = {"generator": self.generator_, "critic": critic, "mover": mover, "judge": judge}
        self.history_ = self._run(play, self.steps, state)
        self.generator_: Generator = average.mean

    def _run(self, play: Callable[[float], Terms], steps: int, state: dict[str, Any]) -> History:
        """Calls ``play`` with the share of the steps that are over, and lowers the step sizes on the way."""
        optimizers = [part for part in state.values() if isinstance(part, Optimizer)]
        first = [[group["lr"] for group in optimizer.param_groups] for optimizer in optimizers]
        done = 0

        def step(_: Batch) -> Terms:
            nonlocal done
            share = done / steps
            done += 1
            factor = _LAST_LR + (1 - _LAST_LR) * (1 + math.cos(math.pi * share)) / 2
            for optimizer, rates in zip(optimizers, first, strict=True):
                for group, rate in zip(optimizer.param_groups, rates, strict=True):
                    group["lr"] = factor * rate
            return play(min(share, 1.0))

        size = min(_STEPS_AN_EPOCH, steps)
        return train(step, Rounds(size), epochs=-(-steps // size), state=state, label=type(self).__name__)
