"""A memory of what happened, from which training draws at random."""

import torch
from torch import Tensor

from offmap.sampling.rl.world import Outcome
from offmap.train import Batch


class Replay:
    """The latest transitions, as rows of tensors; when it is full, the oldest give way.

    Args:
        capacity: Transitions it holds.
        state_width: Numbers that make up a state.
        action_width: Numbers that make up an action.

    Example:
        >>> replay = Replay(capacity=100, state_width=2, action_width=1)
        >>> outcome = Outcome(torch.ones(3, 2), torch.zeros(3), torch.zeros(3) > 0, torch.zeros(3) > 0)
        >>> replay.add(torch.zeros(3, 2), torch.zeros(3, 1), outcome)
        >>> len(replay), [part.shape for part in replay.draw(5)]
        (3, [torch.Size([5, 2]), torch.Size([5, 1]), torch.Size([5]), torch.Size([5, 2]), torch.Size([5])])
    """

    def __init__(self, capacity: int, state_width: int, action_width: int) -> None:
        self._parts = (
            torch.empty(capacity, state_width),
            torch.empty(capacity, action_width),
            torch.empty(capacity),
            torch.empty(capacity, state_width),
            torch.empty(capacity),
        )
        self._seen = 0

    def __len__(self) -> int:
        return min(self._seen, len(self._parts[0]))

    def add(self, states: Tensor, actions: Tensor, outcome: Outcome) -> None:
        """Remembers one step of every copy of a world."""
        rows = (self._seen + torch.arange(len(states))) % len(self._parts[0])
        fresh = (states, actions, outcome.reward, outcome.state, outcome.terminated.to(states.dtype))
        for part, values in zip(self._parts, fresh, strict=True):
            part[rows] = values
        self._seen += len(states)

    def draw(self, count: int) -> Batch:
        """So many transitions at random: states, actions, rewards, following states, and 1 where nothing follows."""
        rows = torch.randint(len(self), (count,))
        return tuple(part[rows] for part in self._parts)
