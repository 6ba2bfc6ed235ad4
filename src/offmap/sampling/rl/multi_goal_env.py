"""The multi-goal task as a gymnasium environment; needs the extra ``rl``."""

from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from offmap.sampling.rl.multi_goal import BOUND, START_SPREAD, move

Array = NDArray[np.float32]


class MultiGoalEnv(gymnasium.Env[Array, Array]):
    """One point that may go to any of four goals, each step as ``multi_goal.move`` says.

    ``gymnasium.make("offmap/MultiGoal-v0")``, known once ``offmap.sampling.rl.gymnasium()`` was called, ends an episode
    after 30 steps.
    """

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-BOUND, BOUND, (2,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Puts the point near the origin."""
        super().reset(seed=seed)
        self._position = self.np_random.normal(0, START_SPREAD, 2).astype(np.float32)
        return self._position.copy(), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Moves the point."""
        step = torch.as_tensor(np.asarray(action, dtype=np.float32))
        reached, reward, arrived = move(torch.from_numpy(self._position)[None], step[None])
        self._position = reached[0].numpy()
        return self._position.copy(), float(reward), bool(arrived), False, {}
