"""Gymnasium's environments as worlds; needs the extra ``rl``."""

import importlib
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from offmap.sampling.rl.world import Outcome

MULTI_GOAL = "offmap/MultiGoal-v0"


def gymnasium() -> ModuleType:
    """The gymnasium package, which knows the multi-goal task from here on; a clear error where it is not installed."""
    try:
        package = importlib.import_module("gymnasium")
    except ImportError:
        raise ImportError("this needs gymnasium; install it with: pip install offmap[rl]") from None
    if MULTI_GOAL not in package.registry:
        entry = "offmap.sampling.rl.multi_goal_env:MultiGoalEnv"
        package.register(MULTI_GOAL, entry_point=entry, max_episode_steps=30)
    return package


class GymWorld:
    """Copies of the environment that gymnasium knows under ``name``, with a box of states and a box of actions.

    Args:
        name: Such as "Pendulum-v1".
        copies: How many run side by side.

    Example:
        >>> world = GymWorld("Pendulum-v1", copies=2)
        >>> world.reset(seed=0).shape, world.action_width
        (torch.Size([2, 3]), 1)
    """

    def __init__(self, name: str, copies: int = 1) -> None:
        gym = gymnasium()
        restart = {"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}
        self._envs = gym.make_vec(name, num_envs=copies, vectorization_mode="sync", vector_kwargs=restart)
        space, observed = self._envs.single_action_space, self._envs.single_observation_space
        if not all(isinstance(box, gym.spaces.Box) and len(box.shape) == 1 for box in (space, observed)):
            raise ValueError(f"name must be an environment with flat boxes of states and actions; got {name!r}")
        if not np.isfinite([space.low, space.high]).all():
            raise ValueError(f"name must be an environment whose actions have bounds; got {name!r}")
        self.copies = copies
        self.state_width, self.action_width = observed.shape[0], space.shape[0]
        self._low, self._high = space.low, space.high

    @property
    def states(self) -> Tensor:
        """Where each copy is now."""
        return self._states

    def reset(self, seed: int) -> Tensor:
        """Starts every copy anew."""
        self._states = _tensor(self._envs.reset(seed=seed)[0])
        return self._states

    def step(self, actions: Tensor) -> Outcome:
        """Moves every copy on; actions in [-1, 1] are scaled to the environment's bounds."""
        scaled = self._low + (actions.clamp(-1, 1).numpy() + 1) / 2 * (self._high - self._low)
        states, reward, terminated, truncated, info = self._envs.step(scaled.astype(self._low.dtype))
        ended = terminated | truncated
        reached = states.copy()
        for copy in np.flatnonzero(ended):
            reached[copy] = info["final_obs"][copy]
        self._states = _tensor(states)
        return Outcome(_tensor(reached), _tensor(reward), torch.from_numpy(terminated), torch.from_numpy(ended))


def _tensor(values: np.ndarray[tuple[int, ...], np.dtype[np.floating]]) -> Tensor:
    return torch.from_numpy(np.array(values, dtype=np.float32))
