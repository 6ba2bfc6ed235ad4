"""Gymnasium environments; needs the extra ``rl``."""

import importlib
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from offmap.errors import reason_of
from offmap.sampling.draws import require_count
from offmap.sampling.rl.environment import StepResult


class GymEnvironment:
    """Runs copies of a gymnasium environment whose observations and actions are flat boxes.

    Args:
        name: The name gymnasium knows it by, such as "Pendulum-v1".
        n_envs: Number of copies.

    Example:
        >>> environment = GymEnvironment("Pendulum-v1", n_envs=2)
        >>> environment.reset(seed=0).shape, environment.action_dim
        (torch.Size([2, 3]), 1)
    """

    def __init__(self, name: str, n_envs: int = 1) -> None:
        gym = _gymnasium()
        self.n_envs = require_count("n_envs", n_envs)
        restart = {"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}
        try:
            self._envs = gym.make_vec(name, num_envs=self.n_envs, vectorization_mode="sync", vector_kwargs=restart)
        except gym.error.Error as error:
            raise ValueError(
                f"name must be an environment that gymnasium can make; got {name!r}: {reason_of(error)}"
            ) from None
        actions, observations = self._envs.single_action_space, self._envs.single_observation_space
        if not all(isinstance(box, gym.spaces.Box) and len(box.shape) == 1 for box in (actions, observations)):
            raise ValueError(f"name must be an environment with flat boxes of observations and actions; got {name!r}")
        if not np.isfinite([actions.low, actions.high]).all():
            raise ValueError(f"name must be an environment with bounded actions; got {name!r}")
        self.state_dim, self.action_dim = observations.shape[0], actions.shape[0]
        self._low, self._high = actions.low, actions.high

    @property
    def states(self) -> Tensor:
        """The current state of each copy."""
        return self._states

    def reset(self, seed: int) -> Tensor:
        """Starts a new episode in every copy."""
        self._states = _tensor(self._envs.reset(seed=seed)[0])
        return self._states

    def step(self, actions: Tensor) -> StepResult:
        """Takes one action in every copy; actions in [-1, 1] are rescaled to the environment's bounds."""
        scaled = self._low + (actions.clamp(-1, 1).numpy() + 1) / 2 * (self._high - self._low)
        states, reward, terminated, truncated, info = self._envs.step(scaled.astype(self._low.dtype))
        ended = terminated | truncated
        reached = states.copy()
        for copy in np.flatnonzero(ended):
            reached[copy] = info["final_obs"][copy]
        self._states = _tensor(states)
        return StepResult(_tensor(reached), _tensor(reward), torch.from_numpy(terminated), torch.from_numpy(ended))


def _gymnasium() -> ModuleType:
    try:
        return importlib.import_module("gymnasium")
    except ImportError:
        raise ImportError("GymEnvironment needs gymnasium; pip install '.[rl]' in Offmap's folder") from None


def _tensor(values: np.ndarray[tuple[int, ...], np.dtype[np.floating]]) -> Tensor:
    return torch.from_numpy(np.array(values, dtype=np.float32))
