"""What the policies share: a generator of actions, and what it learns to draw from."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from offmap.sampling.networks import Generator
from offmap.train import Step

# Maps states (n, s) and actions (n, k, a) to log densities (n, k), each up to a number of its state.
LogDensity = Callable[[Tensor, Tensor], Tensor]


class Policy(nn.Module, ABC):
    r"""Draws an action of a state in one pass, $a = h_\theta(\varepsilon; s)$ with noise as wide as the action.

    Args:
        state_width: Numbers that make up a state.
        action_width: Numbers that make up an action, each in [-1, 1].
        hidden: Widths of the hidden layers.
        particles: Actions that training looks at in each state.
    """

    fixed_noise: Tensor

    def __init__(self, state_width: int, action_width: int, hidden: tuple[int, ...], particles: int) -> None:
        super().__init__()
        self.particles = particles
        self.register_buffer("fixed_noise", torch.randn(particles, action_width))
        self.generator = Generator(
            noise=action_width, outputs=action_width, hidden=hidden, context=state_width, support=(-1.0, 1.0)
        )

    def draw(self, states: Tensor, count: int = 1) -> Tensor:
        """So many actions of each state, ``(n, count, a)``."""
        return self.generator.draw(count, states)

    @abstractmethod
    def learning(self, log_density: LogDensity, lr: float) -> Step:
        r"""Makes the step that brings the policy nearer to the density $e^{Q(s, a) / \alpha}$ of each state.

        The step takes a batch whose first tensor holds the states.
        """
