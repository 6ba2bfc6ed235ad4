"""What a policy is worth: whole episodes from fixed starts."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from offmap.random_state import local_seed
from offmap.sampling.rl.multi_goal import GOALS, RADIUS, nearest_goal
from offmap.sampling.rl.world import World

Act = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Episodes:
    """One episode of each copy of a world.

    Args:
        returns: Sum of the rewards of each episode.
        paths: States from the start on, ``(steps + 1, copies, width)``; after its end an episode stays where it is.
    """

    returns: Tensor
    paths: Tensor

    @property
    def ends(self) -> Tensor:
        """The last state of each episode."""
        return self.paths[-1]


@torch.no_grad()
def evaluate(act: Act, world: World, seed: int = 0) -> Episodes:
    """Plays one episode in every copy of ``world``, which must end at some time.

    The same ``seed`` gives the same starts and, for a policy that draws, the same draws.

    Args:
        act: Maps states to actions in [-1, 1].
        world: Where to play.
        seed: Seed of the starts and draws.

    Example:
        >>> from offmap.sampling.rl.multi_goal import MultiGoalWorld
        >>> played = evaluate(torch.zeros_like, MultiGoalWorld(copies=100))
        >>> round(float(played.returns.mean()), -1)
        -720.0
    """
    with local_seed(seed):
        states = world.reset(seed)
        returns, running = torch.zeros(world.copies), torch.ones(world.copies, dtype=torch.bool)
        paths = [states]
        while running.any():
            outcome = world.step(act(world.states))
            returns += outcome.reward * running
            paths.append(torch.where(running[:, None], outcome.state, paths[-1]))
            running &= ~outcome.ended
    return Episodes(returns, torch.stack(paths))


def arrivals(episodes: Episodes) -> Tensor:
    """How many episodes of the multi-goal task ended at each of the four goals.

    Example:
        >>> from offmap.sampling.rl.multi_goal import MultiGoalWorld
        >>> right = lambda states: torch.tensor([1.0, 0.0]).expand_as(states)
        >>> arrivals(evaluate(right, MultiGoalWorld(copies=10)))
        tensor([10,  0,  0,  0])
    """
    distance, goal = nearest_goal(episodes.ends)
    return torch.bincount(goal[distance < RADIUS], minlength=len(GOALS))
