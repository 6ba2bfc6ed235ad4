"""Base class of the policies."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from offmap.sampling.networks import Generator
from offmap.train import Step

# Maps states (n, s) and actions (n, k, a) to log densities (n, k), up to a constant per state.
ActionLogDensity = Callable[[Tensor, Tensor], Tensor]


class Policy(nn.Module, ABC):
    r"""Draws actions for states in one forward pass, $a = h_\theta(\varepsilon; s)$.

    The noise has as many dimensions as an action.

    Args:
        state_dim: Dimensions of a state.
        action_dim: Dimensions of an action; each is in [-1, 1].
        hidden: Widths of the hidden layers.
        particles: Actions per state in training.
    """

    fixed_noise: Tensor

    def __init__(self, state_dim: int, action_dim: int, hidden: tuple[int, ...], particles: int) -> None:
        super().__init__()
        self.particles = particles
        self.register_buffer("fixed_noise", torch.randn(particles, action_dim))
        self.generator = Generator(
            noise_dim=action_dim, dim=action_dim, hidden=hidden, context_dim=state_dim, support=(-1.0, 1.0)
        )

    def draw(self, states: Tensor, count: int = 1, rng: torch.Generator | None = None) -> Tensor:
        """Draws ``count`` actions per state, ``(n, count, a)``, from ``rng`` or else torch's global generator."""
        return self.generator.draw(count, states, rng)

    @abstractmethod
    def training_step(self, log_density: ActionLogDensity, lr: float) -> Step:
        r"""Makes the step that trains the policy to draw from $e^{Q(s, a) / \alpha}$ in each state.

        The first tensor of a batch holds the states.
        """
