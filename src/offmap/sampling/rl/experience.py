"""What an agent lives through while it learns, as the batches of the training loop."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from offmap.sampling.rl.replay import Replay
from offmap.sampling.rl.world import World
from offmap.train import Batch


class Experience:
    """Acts one step in every copy of a world, then yields batches of what is remembered, and so on.

    Args:
        world: Where to act; it has been reset.
        act: Maps states to actions.
        replay: The memory.
        steps: World steps an epoch.
        updates: Batches after each step.
        batch_size: Transitions in a batch.
        exploring: Copies that act at random throughout; their returns are not noted.
    """

    def __init__(
        self,
        world: World,
        act: Callable[[Tensor], Tensor],
        replay: Replay,
        *,
        steps: int,
        updates: int,
        batch_size: int,
        exploring: int = 0,
    ) -> None:
        self.world, self.act, self.replay = world, act, replay
        self.steps, self.updates, self.batch_size = steps, updates, batch_size
        self.exploring = exploring
        self.returns: list[float] = []
        self._running = torch.zeros(world.copies)

    def __len__(self) -> int:
        return self.steps * self.updates

    def __iter__(self) -> Iterator[Batch]:
        for _ in range(self.steps):
            self.live()
            for _ in range(self.updates):
                yield self.replay.draw(self.batch_size)

    @torch.no_grad()
    def live(self, at_random: bool = False) -> None:
        """One step of every copy, remembered; the return of each episode that ends by it is noted."""
        states = self.world.states
        actions = 2 * torch.rand(self.world.copies, self.world.action_width) - 1
        if not at_random:
            actions[self.exploring :] = self.act(states[self.exploring :])
        outcome = self.world.step(actions)
        self.replay.add(states, actions, outcome)
        self._running += outcome.reward
        self.returns += self._running[self.exploring :][outcome.ended[self.exploring :]].tolist()
        self._running[outcome.ended] = 0
