"""What an agent acts in: copies of one environment, stepped together as tensors.

Actions are in $[-1, 1]$ here, whatever the bounds of the environment: a world scales them.
"""

from typing import NamedTuple, Protocol

from torch import Tensor


class Outcome(NamedTuple):
    """What one step of every copy led to.

    Args:
        state: The states reached, also where the episode ended there.
        reward: The reward of each copy.
        terminated: Whether nothing follows; False where time alone ran out, since the value of the state goes on.
        ended: Whether the episode is over, for either reason.
    """

    state: Tensor
    reward: Tensor
    terminated: Tensor
    ended: Tensor


class World(Protocol):
    """Copies of one environment; a copy whose episode ends starts anew by itself."""

    @property
    def copies(self) -> int:
        """How many there are."""

    @property
    def state_width(self) -> int:
        """Numbers that make up a state."""

    @property
    def action_width(self) -> int:
        """Numbers that make up an action."""

    def reset(self, seed: int) -> Tensor:
        """Starts every copy anew, in a way that depends on ``seed`` alone, and returns the states."""

    def step(self, actions: Tensor) -> Outcome:
        """Moves every copy on."""

    @property
    def states(self) -> Tensor:
        """Where each copy is now: after an episode's end, at the start of the next."""
