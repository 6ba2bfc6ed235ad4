"""Losses of reference-based adversarial sampling."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from offmap.ratio import ratio_loss
from offmap.sampling.divergences import OBJECTIVES
from offmap.sampling.log_density import LogDensity, evaluate, require_possible
from offmap.sampling.mixture_reference import ComponentMoments, MixtureReference
from offmap.sampling.networks import Critic, Generator
from offmap.sampling.noise import MixtureNoise
from offmap.sampling.objectives import cycle_error, log_ratio
from offmap.sampling.references import BetaReference, GaussianReference, fit_reference
from offmap.sampling.support import Support
from offmap.train import Batch

# Weight of a new batch in the moving moments of the reference, where there is no context.
_MOMENT_WEIGHT = 0.05
# Samples per context in a batch.
SAMPLES_PER_CONTEXT = 32
_REMEDY = "if points outside a box are impossible, pass the box as support, else make log_density finite everywhere"


@dataclass
class RASLosses:
    """Draws the samples of each training step and computes the losses of critic and generator from them.

    Args:
        generator: Draws samples.
        critic: Tells them from points of the reference.
        inverse: Predicts the noise from the samples, for the cycle bound on the entropy.
        log_density: The log density to sample from, up to a constant.
        support: Bounds of the samples, if there are any.
        contexts: Contexts of the generator and the log density, ``(m, c)``, if there are any.
        divergence: Name of the generator's objective.
        batch_size: Samples per step.
        uniform_share: Share of a Beta reference that is uniform.
        reference: A fixed reference; if None, its moments follow the generator's samples, those of each component
            where the noise is a mixture.
    """

    generator: Generator
    critic: Critic
    inverse: nn.Module
    log_density: LogDensity
    support: Support | None
    contexts: Tensor | None
    divergence: str
    batch_size: int
    uniform_share: float = 0.0
    reference: GaussianReference | BetaReference | MixtureReference | None = None

    def __post_init__(self) -> None:
        self._fixed = self.reference is not None
        self._moments: ComponentMoments | None = None
        self._objective: Callable[[Tensor], Tensor] = OBJECTIVES[self.divergence]

    def begin_step(self, power: float = 1.0, cycle_weight: float = 0.0) -> None:
        """Draws the samples of a step and updates the reference with their moments.

        Args:
            power: Power of the density that is the target of this step, $1 - β$.
            cycle_weight: Weight of the cycle bound.
        """
        self.power, self.cycle_weight = power, cycle_weight
        self.context, shape = self._draw_contexts()
        self.noise, self.component = self._draw_noise(shape)
        self.x = self.generator(self.noise, self.context)
        if not self._fixed:
            self._update_reference()

    def critic_batch(self, fresh: bool = False) -> Batch:
        """Points of the reference, and samples of this step or ``fresh`` ones."""
        assert self.reference is not None
        x = self.x.detach()
        if fresh:
            with torch.no_grad():
                x = self.generator(self._draw_noise(self.noise.shape[:-1])[0], self.context)
        return self.reference.draw(x.shape[-2]), x

    def critic_loss(self, batch: Batch) -> dict[str, Tensor]:
        """The density-ratio loss between reference and generator, both in one forward pass."""
        w = self.critic(torch.cat(batch, dim=-2), self.context)
        return {"critic": ratio_loss(*w.tensor_split(2, dim=-1))}

    def generator_loss(self, batch: Batch) -> dict[str, Tensor]:
        """The losses of the generator, and of the inverse if there is a cycle bound."""
        noise, x = batch
        assert self.reference is not None
        w = log_ratio(self.critic, self.reference, self._log_target, x, self.context)
        self.log_ratio = w.detach()
        losses = {"generator": -self._objective(w - self._log_normaliser(w)).mean()}
        self._require_usable(x, losses["generator"])
        if self.cycle_weight > 0:
            losses["cycle"] = self.cycle_weight * cycle_error(noise.detach(), self.inverse(self.critic.rescale(x)))
        return losses

    def reweight_noise(self, rate: float) -> None:
        """Moves the weights of a mixture of noise by the log ratios of this step's samples."""
        if isinstance(self.generator.noise, MixtureNoise) and self.component is not None:
            self.generator.noise.reweight(self.component, self.log_ratio, rate)

    def _log_target(self, x: Tensor) -> Tensor:
        return self.power * evaluate(self.log_density, x, self.context)

    def _require_usable(self, x: Tensor, loss: Tensor) -> None:
        """Blames the log density if it is why the loss, or the new weights of a mixture, would not be finite."""
        # Some divergences ignore samples with a log density of -inf; the weights of a mixture never do.
        weighted = self.component is not None and not self.log_ratio.mean().isfinite()
        if weighted or not loss.isfinite():
            require_possible(x, evaluate(self.log_density, x, self.context), _REMEDY)

    def _log_normaliser(self, w: Tensor) -> Any:
        """Estimates the log normalising constant from the ratios; it has no effect on the reverse KL divergence."""
        if self.divergence == "reverse_kl":
            return 0.0
        return w.detach().logsumexp(-1, keepdim=True) - math.log(w.shape[-1])

    def _draw_noise(self, shape: tuple[int, ...]) -> tuple[Tensor, Tensor | None]:
        """The noise of a batch, and its components if it is a mixture (which it never is with contexts)."""
        noise, device = self.generator.noise, self.generator.device
        if isinstance(noise, MixtureNoise):
            return noise.draw_evenly(shape[0], device)
        return noise.draw(shape, device), None

    def _draw_contexts(self) -> tuple[Tensor | None, tuple[int, ...]]:
        if self.contexts is None:
            return None, (self.batch_size,)
        count = max(self.batch_size // SAMPLES_PER_CONTEXT, 1)
        rows = torch.randint(len(self.contexts), (count,), device=self.contexts.device)
        return self.contexts[rows], (len(rows), SAMPLES_PER_CONTEXT)

    def _update_reference(self) -> None:
        x, noise = self.x.detach(), self.generator.noise
        if isinstance(noise, MixtureNoise) and self.component is not None:
            self._moments = component_moments(x, self.component, noise, self.support, self._moments)
            weights = noise.log_weights.softmax(0)
            self.reference = MixtureReference.of(self._moments, weights, self.support, self.uniform_share)
            return
        new: Any = fit_reference(x, self.support, self.uniform_share)
        # With contexts, each step has other contexts; without, the moments average over many steps.
        old: Any = self.reference if self.contexts is None else None
        self.reference = new if old is None else old.toward(new, _MOMENT_WEIGHT)


def component_moments(
    x: Tensor, component: Tensor, noise: MixtureNoise, support: Support | None, old: ComponentMoments | None = None
) -> ComponentMoments:
    """The moments of each component of the noise, on a box in units of the box, with samples ``x`` added."""
    if support is not None:
        low, high = (torch.as_tensor(bound, dtype=x.dtype, device=x.device) for bound in support)
        x = (x - low) / (high - low)
    old = ComponentMoments.start(x, len(noise.log_weights)) if old is None else old
    return old.add(x, component)
