"""An environment for tests."""

import torch
from torch import Tensor

from offmap.sampling.rl import StepResult


class Plane:
    """A point in the plane that actions move for 30 steps; the cost is its squared distance from the origin."""

    state_dim = action_dim = 2

    def __init__(self, n_envs: int) -> None:
        self.n_envs = n_envs

    def reset(self, seed: int) -> Tensor:
        self.starts = torch.randn(self.n_envs, 2, generator=torch.Generator().manual_seed(seed))
        self.states, self.time = self.starts, 0
        return self.states

    def step(self, actions: Tensor) -> StepResult:
        self.time += 1
        reached = self.states + actions
        ended = torch.full((self.n_envs,), self.time % 30 == 0)
        self.states = self.starts if ended.all() else reached
        return StepResult(reached, -reached.square().sum(1), torch.zeros_like(ended), ended)
