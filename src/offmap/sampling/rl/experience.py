"""Collection of experience in an environment, as batches for the training loop."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from offmap.sampling.rl.checks import checked_states, checked_step
from offmap.sampling.rl.environment import Environment
from offmap.sampling.rl.replay_buffer import ReplayBuffer
from offmap.train import Batch


class Experience:
    """Alternates between one step in every copy of an environment and batches from the replay buffer.

    Args:
        environment: Where to act; it has been reset.
        act: Maps states to actions.
        buffer: Stores the transitions.
        steps: Environment steps per epoch.
        updates: Batches per environment step.
        batch_size: Transitions per batch.
        n_exploring: Number of copies that always act at random; their returns are not recorded.
    """

    def __init__(
        self,
        environment: Environment,
        act: Callable[[Tensor], Tensor],
        buffer: ReplayBuffer,
        *,
        steps: int,
        updates: int,
        batch_size: int,
        n_exploring: int = 0,
    ) -> None:
        self.environment, self.act, self.buffer = environment, act, buffer
        self.steps, self.updates, self.batch_size = steps, updates, batch_size
        self.n_exploring = n_exploring
        self.returns: list[float] = []
        self._running = torch.zeros(environment.n_envs)

    def __len__(self) -> int:
        return self.steps * self.updates

    def __iter__(self) -> Iterator[Batch]:
        for _ in range(self.steps):
            self.collect()
            for _ in range(self.updates):
                yield self.buffer.draw(self.batch_size)

    @torch.no_grad()
    def collect(self, at_random: bool = False) -> None:
        """Takes one step in every copy, stores the transitions, and records the return of each episode that ends."""
        states = checked_states("environment.states", self.environment.states, self.environment.state_dim)
        actions = 2 * torch.rand(self.environment.n_envs, self.environment.action_dim) - 1
        if not at_random:
            actions[self.n_exploring :] = self.act(states[self.n_exploring :])
        result = checked_step(self.environment.step(actions), self.environment)
        self.buffer.add(states, actions, result)
        self._running += result.reward
        self.returns += self._running[self.n_exploring :][result.ended[self.n_exploring :]].tolist()
        self._running[result.ended] = 0
