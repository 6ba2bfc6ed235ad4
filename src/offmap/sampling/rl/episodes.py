"""Evaluation of a policy by whole episodes."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from offmap.sampling.rl.checks import checked_states, checked_step, require_environment
from offmap.sampling.rl.environment import Environment


@dataclass(frozen=True)
class Episodes:
    """One episode per copy of an environment.

    Args:
        returns: Sum of the rewards of each episode.
        trajectories: The states from the first to the last step, ``(steps + 1, n_envs, state_dim)``; an episode that
            is over repeats its last state.
    """

    returns: Tensor
    trajectories: Tensor

    @property
    def final_states(self) -> Tensor:
        """The last state of each episode."""
        return self.trajectories[-1]


@torch.no_grad()
def evaluate(act: Callable[[Tensor], Tensor], environment: Environment, seed: int = 0) -> Episodes:
    """Runs one episode in every copy of ``environment``, whose episodes must end at some time.

    Args:
        act: Maps states to actions in [-1, 1]. To repeat the actions of a policy that draws them, give it a generator
            with a seed of its own: ``lambda states: agent.act(states, rng)``.
        environment: Where to run the episodes.
        seed: Seed of the initial states.

    Example:
        >>> from offmap.sampling.rl import GymEnvironment
        >>> episodes = evaluate(lambda states: torch.zeros(len(states), 1), GymEnvironment("Pendulum-v1", n_envs=3))
        >>> episodes.returns.shape, episodes.trajectories.shape
        (torch.Size([3]), torch.Size([201, 3, 3]))
    """
    require_environment(environment)
    states = checked_states("states of reset", environment.reset(seed), environment.state_dim)
    returns, running = torch.zeros(environment.n_envs), torch.ones(environment.n_envs, dtype=torch.bool)
    trajectories = [states]
    while running.any():
        states = checked_states("environment.states", environment.states, environment.state_dim)
        result = checked_step(environment.step(act(states)), environment)
        returns += result.reward * running
        trajectories.append(torch.where(running[:, None], result.state, trajectories[-1]))
        running &= ~result.ended
    return Episodes(returns, torch.stack(trajectories))
