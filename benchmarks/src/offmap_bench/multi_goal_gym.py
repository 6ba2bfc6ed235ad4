"""The multi-goal task as a gymnasium environment, for libraries that train on those."""

from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from offmap_bench.multi_goal import BOUND, HORIZON, START_SPREAD, move

Array = NDArray[np.float32]
MULTI_GOAL = "offmap_bench/MultiGoal-v0"


class MultiGoalEnv(gymnasium.Env[Array, Array]):
    """One point with four goals, which moves as ``multi_goal.move`` says.

    Importing this module registers it, so that ``gymnasium.make(MULTI_GOAL)`` makes one with episodes of 30 steps.
    """

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-BOUND, BOUND, (2,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Moves the point to a start near the origin."""
        super().reset(seed=seed)
        self._position = self.np_random.normal(0, START_SPREAD, 2).astype(np.float32)
        return self._position.copy(), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Moves the point."""
        step = torch.as_tensor(np.asarray(action, dtype=np.float32))
        reached, reward, arrived = move(torch.from_numpy(self._position)[None], step[None])
        self._position = reached[0].numpy()
        return self._position.copy(), float(reward), bool(arrived), False, {}


if MULTI_GOAL not in gymnasium.registry:
    gymnasium.register(MULTI_GOAL, entry_point=f"{__name__}:MultiGoalEnv", max_episode_steps=HORIZON)
