"""The interface of environments: several copies of one environment that are stepped together as tensors.

Actions are in $[-1, 1]$, whatever the bounds of the environment itself: an implementation rescales them.
"""

from typing import NamedTuple, Protocol

from torch import Tensor


class StepResult(NamedTuple):
    """The result of one step in every copy.

    Args:
        state: The states reached, including the last state of an episode that ended.
        reward: The reward in each copy.
        terminated: Whether the state reached is terminal; False where only the time limit was reached, because the
            value of such a state still counts.
        ended: Whether the episode is over, for either reason.
    """

    state: Tensor
    reward: Tensor
    terminated: Tensor
    ended: Tensor


class Environment(Protocol):
    """Several copies of one environment; a copy whose episode ends is reset by itself."""

    @property
    def n_envs(self) -> int:
        """Number of copies."""

    @property
    def state_dim(self) -> int:
        """Dimensions of a state."""

    @property
    def action_dim(self) -> int:
        """Dimensions of an action."""

    def reset(self, seed: int) -> Tensor:
        """Starts a new episode in every copy and returns the states; they depend on ``seed`` alone."""

    def step(self, actions: Tensor) -> StepResult:
        """Takes one action in every copy."""

    @property
    def states(self) -> Tensor:
        """The current state of each copy; after the end of an episode, the first state of the next one."""
