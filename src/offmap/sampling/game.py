"""One round of reference-based adversarial sampling: what the critic compares, and what the generator climbs."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from offmap.sampling.links import LINKS
from offmap.sampling.networks import Critic, Generator
from offmap.sampling.objectives import critic_loss, cycle_error, log_ratio
from offmap.sampling.references import BetaReference, GaussianReference, Support, reference_of
from offmap.sampling.targets import LogDensity, evaluate
from offmap.train import Batch

# How far the moments of the reference move to those of a new batch, where one density is all there is.
_PACE = 0.05
# Samples drawn for each context of a batch.
PARTICLES = 32


@dataclass
class Game:
    """The players and the board.

    Args:
        generator: Draws samples.
        critic: Tells them from those of the reference.
        inverse: Reads the noise off the samples, for the cycle bound.
        log_density: The target.
        support: Its box, if it has one.
        contexts: What the generator and the target are given, ``(m, c)``, if anything.
        g0: What the generator climbs.
        batch_size: Samples a round.
        even: Share of the reference that is spread evenly over the box.
        reference: One to keep; by default it follows the generator.
    """

    generator: Generator
    critic: Critic
    inverse: nn.Module
    log_density: LogDensity
    support: Support | None
    contexts: Tensor | None
    g0: str
    batch_size: int
    even: float = 0.0
    reference: GaussianReference | BetaReference | None = None

    def __post_init__(self) -> None:
        self._fixed = self.reference is not None
        self._link: Callable[[Tensor], Tensor] = LINKS[self.g0]

    def begin(self, power: float, cycle: float) -> None:
        """Draws the samples of a round and lets the reference follow their moments.

        Args:
            power: The power of the density that is aimed at, 1 − β.
            cycle: Weight of the cycle bound.
        """
        self.power, self.cycle = power, cycle
        self.context, count = self._some_contexts()
        self.noise = torch.randn(*count, self.generator.noise, device=next(self.critic.parameters()).device)
        self.x = self.generator(self.noise, self.context)
        if not self._fixed:
            self._follow(reference_of(self.x, self.support, self.even))

    def compared(self, fresh: bool = False) -> Batch:
        """Points of the reference and of the generator, those of this round or fresh ones."""
        assert self.reference is not None
        x = self.x.detach()
        if fresh:
            with torch.no_grad():
                x = self.generator(torch.randn_like(self.noise), self.context)
        return self.reference.draw(x.shape[-2]), x

    def judge(self, batch: Batch) -> dict[str, Tensor]:
        """What the critic descends, both kinds of points in one pass."""
        w = self.critic(torch.cat(batch, dim=-2), self.context)
        return {"critic": critic_loss(*w.tensor_split(2, dim=-1))}

    def move(self, batch: Batch) -> dict[str, Tensor]:
        """What the generator descends, and the inverse with it."""
        noise, x = batch
        assert self.reference is not None
        w = log_ratio(self.critic, self.reference, self._log_u, x, self.context)
        terms = {"generator": -self._link(w - self._log_z(w)).mean()}
        if self.cycle > 0:
            terms["cycle"] = self.cycle * cycle_error(noise, self.inverse(x / self.critic.scale))
        return terms

    def _log_u(self, x: Tensor) -> Tensor:
        return self.power * evaluate(self.log_density, x, self.context)

    def _log_z(self, w: Tensor) -> Any:
        """What the ratios lack to be those of a density that integrates to 1: of no account to the identity."""
        return 0.0 if self.g0 == "reverse-kl" else w.detach().logsumexp(-1, keepdim=True) - math.log(w.shape[-1])

    def _some_contexts(self) -> tuple[Tensor | None, tuple[int, ...]]:
        if self.contexts is None:
            return None, (self.batch_size,)
        rows = torch.randint(len(self.contexts), (max(self.batch_size // PARTICLES, 1),), device=self.contexts.device)
        return self.contexts[rows], (len(rows), PARTICLES)

    def _follow(self, new: Any) -> None:
        # The moments of a context come from its own samples; of the one density, from those of many rounds.
        old = self.reference if self.contexts is None else None
        self.reference = new if old is None else old.toward(new, _PACE)
