"""A point in the plane that may go to any of four goals: the test of whether a policy keeps all its options."""

import torch
from torch import Tensor

from offmap.sampling.rl.world import Outcome

GOALS = torch.tensor([[5.0, 0.0], [-5.0, 0.0], [0.0, 5.0], [0.0, -5.0]])
RADIUS = 1.0
BOUND = 7.0
HORIZON = 30
ACTION_COST = 30.0
GOAL_REWARD = 10.0
START_SPREAD = 0.1


def nearest_goal(positions: Tensor) -> tuple[Tensor, Tensor]:
    """The distance to the nearest goal, and which it is.

    Example:
        >>> nearest_goal(torch.tensor([[0.0, 3.0]]))
        (tensor([2.]), tensor([2]))
    """
    distance, goal = torch.cdist(positions, GOALS, compute_mode="donot_use_mm_for_euclid_dist").min(dim=1)
    return distance, goal


def move(positions: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Moves points by their actions; returns where they are, their rewards and whether they are at a goal.

    With $x' = x + a$, kept in $[-7, 7]^2$, and $d$ the distance from $x'$ to the nearest goal,

    $$r = -30 \|a\|^2 - d^2 + 10 \cdot [d < 1].$$

    The way that pays best from the origin, nine steps straight to a goal, is worth −110.

    Args:
        positions: Points of the plane, ``(n, 2)``.
        actions: Steps to take, ``(n, 2)``; each number is kept in $[-1, 1]$.

    Reference: Haarnoja et al., Reinforcement Learning with Deep Energy-Based Policies, arXiv:1702.08165.

    Example:
        >>> move(torch.tensor([[3.0, 0.0]]), torch.tensor([[0.5, 0.0]]))
        (tensor([[3.5000, 0.0000]]), tensor([-9.7500]), tensor([False]))
    """
    actions = actions.clamp(-1, 1)
    reached = (positions + actions).clamp(-BOUND, BOUND)
    distance, _ = nearest_goal(reached)
    arrived = distance < RADIUS
    reward = -ACTION_COST * actions.square().sum(1) - distance.square() + GOAL_REWARD * arrived
    return reached, reward, arrived


class MultiGoalWorld:
    """Copies of the multi-goal task, each an episode of at most 30 steps that ends at a goal.

    An episode starts near the origin, normally distributed with a standard deviation of 0.1.

    Example:
        >>> world = MultiGoalWorld(copies=3)
        >>> world.reset(seed=0).shape
        torch.Size([3, 2])
        >>> world.step(torch.zeros(3, 2)).reward.round()
        tensor([-23., -23., -24.])
    """

    state_width = 2
    action_width = 2

    def __init__(self, copies: int = 1) -> None:
        if copies < 1:
            raise ValueError(f"copies must be an integer at least 1; got {copies!r}")
        self.copies = copies

    @property
    def states(self) -> Tensor:
        """Where each point is now."""
        return self._positions

    def reset(self, seed: int) -> Tensor:
        """Puts every point near the origin."""
        self._random = torch.Generator().manual_seed(seed)
        self._positions = self._starts(self.copies)
        self._time = torch.zeros(self.copies, dtype=torch.int64)
        return self._positions

    def step(self, actions: Tensor) -> Outcome:
        """Moves every point; those that arrived or ran out of time start anew."""
        reached, reward, arrived = move(self._positions, actions)
        self._time += 1
        ended = arrived | (self._time >= HORIZON)
        self._time[ended] = 0
        self._positions = reached.clone()
        self._positions[ended] = self._starts(int(ended.sum()))
        return Outcome(reached, reward, arrived, ended)

    def _starts(self, count: int) -> Tensor:
        return START_SPREAD * torch.randn(count, 2, generator=self._random)
