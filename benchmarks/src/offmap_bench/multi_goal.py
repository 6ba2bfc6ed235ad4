"""The multi-goal task: a point in the plane with four equally good goals, to test whether a policy finds them all."""

import torch
from torch import Tensor

from offmap.sampling.rl import Episodes, StepResult

GOALS = torch.tensor([[5.0, 0.0], [-5.0, 0.0], [0.0, 5.0], [0.0, -5.0]])
RADIUS = 1.0
BOUND = 7.0
HORIZON = 30
ACTION_COST = 30.0
GOAL_REWARD = 10.0
START_SPREAD = 0.1


def nearest_goal(positions: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the distance to the nearest goal and the index of that goal.

    Example:
        >>> nearest_goal(torch.tensor([[0.0, 3.0]]))
        (tensor([2.]), tensor([2]))
    """
    distance, goal = torch.cdist(positions, GOALS, compute_mode="donot_use_mm_for_euclid_dist").min(dim=1)
    return distance, goal


def move(positions: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Moves points by their actions; returns the new positions, the rewards and whether a goal was reached.

    With $x' = x + a$, clipped to $[-7, 7]^2$, and $d$ the distance from $x'$ to the nearest goal,

    $$r = -30 \|a\|^2 - d^2 + 10 \cdot [d < 1].$$

    The best return from the origin is −110: nine steps straight to a goal.

    Args:
        positions: Points of the plane, ``(n, 2)``.
        actions: Displacements, ``(n, 2)``, clipped to $[-1, 1]$.

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


class MultiGoalEnvironment:
    """Copies of the multi-goal task; an episode ends at a goal or after 30 steps.

    Episodes start near the origin, normally distributed with a standard deviation of 0.1.

    Args:
        n_envs: Number of copies.

    Example:
        >>> environment = MultiGoalEnvironment(n_envs=3)
        >>> environment.reset(seed=0).shape
        torch.Size([3, 2])
        >>> environment.step(torch.zeros(3, 2)).reward.round()
        tensor([-23., -23., -24.])
    """

    state_dim = 2
    action_dim = 2

    def __init__(self, n_envs: int = 1) -> None:
        if n_envs < 1:
            raise ValueError(f"n_envs must be an integer at least 1; got {n_envs!r}")
        self.n_envs = n_envs

    @property
    def states(self) -> Tensor:
        """The current position of each point."""
        return self._positions

    def reset(self, seed: int) -> Tensor:
        """Moves every point to a start near the origin."""
        self._random = torch.Generator().manual_seed(seed)
        self._positions = self._starts(self.n_envs)
        self._time = torch.zeros(self.n_envs, dtype=torch.int64)
        return self._positions

    def step(self, actions: Tensor) -> StepResult:
        """Moves every point; those whose episode ended start again."""
        reached, reward, arrived = move(self._positions, actions)
        self._time += 1
        ended = arrived | (self._time >= HORIZON)
        self._time[ended] = 0
        self._positions = reached.clone()
        self._positions[ended] = self._starts(int(ended.sum()))
        return StepResult(reached, reward, arrived, ended)

    def _starts(self, count: int) -> Tensor:
        return START_SPREAD * torch.randn(count, 2, generator=self._random)


def arrivals(episodes: Episodes) -> Tensor:
    """Counts the episodes that ended at each of the four goals.

    Example:
        >>> from offmap.sampling.rl import evaluate
        >>> right = lambda states: torch.tensor([1.0, 0.0]).expand_as(states)
        >>> arrivals(evaluate(right, MultiGoalEnvironment(n_envs=10)))
        tensor([10,  0,  0,  0])
    """
    distance, goal = nearest_goal(episodes.final_states)
    return torch.bincount(goal[distance < RADIUS], minlength=len(GOALS))
