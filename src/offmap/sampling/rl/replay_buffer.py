"""A buffer of past transitions, from which training batches are drawn."""

import torch
from torch import Tensor

from offmap.sampling.rl.environment import StepResult
from offmap.train import Batch


class ReplayBuffer:
    """Stores the latest transitions; once it is full, new ones replace the oldest.

    Args:
        capacity: Number of transitions it holds.
        state_dim: Dimensions of a state.
        action_dim: Dimensions of an action.

    Example:
        >>> buffer = ReplayBuffer(capacity=100, state_dim=2, action_dim=1)
        >>> result = StepResult(torch.ones(3, 2), torch.zeros(3), torch.zeros(3) > 0, torch.zeros(3) > 0)
        >>> buffer.add(torch.zeros(3, 2), torch.zeros(3, 1), result)
        >>> len(buffer), [part.shape for part in buffer.draw(5)]
        (3, [torch.Size([5, 2]), torch.Size([5, 1]), torch.Size([5]), torch.Size([5, 2]), torch.Size([5])])
    """

    def __init__(self, capacity: int, state_dim: int, action_dim: int) -> None:
        self._parts = (
            torch.empty(capacity, state_dim),
            torch.empty(capacity, action_dim),
            torch.empty(capacity),
            torch.empty(capacity, state_dim),
            torch.empty(capacity),
        )
        self._added = 0

    def __len__(self) -> int:
        return min(self._added, len(self._parts[0]))

    def add(self, states: Tensor, actions: Tensor, result: StepResult) -> None:
        """Stores one step of every copy of an environment."""
        rows = (self._added + torch.arange(len(states))) % len(self._parts[0])
        new = (states, actions, result.reward, result.state, result.terminated.to(states.dtype))
        for part, values in zip(self._parts, new, strict=True):
            part[rows] = values
        self._added += len(states)

    def draw(self, count: int) -> Batch:
        """Draws transitions at random: states, actions, rewards, next states, and 1 where these are terminal."""
        rows = torch.randint(len(self), (count,))
        return tuple(part[rows] for part in self._parts)
