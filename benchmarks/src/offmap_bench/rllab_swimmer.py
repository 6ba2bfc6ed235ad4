"""The swimmer of rllab, on which soft Q-learning was published, as a gymnasium environment."""

from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.envs.mujoco.swimmer_v5 import SwimmerEnv
from numpy.typing import NDArray

Array = NDArray[np.float64]
ID = "offmap_bench/RllabSwimmer-v0"
FRAMES, TIMESTEP, TORQUE, EFFORT_COST = 50, 0.001, 50.0, 0.005
POSITION_NOISE, VELOCITY_NOISE = 0.01, 0.1
TORSO = 1


class RllabSwimmer(SwimmerEnv):
    """Gymnasium's body with rllab's motors, time step, observations and reward.

    The reward is the velocity of the centre of mass of all three links; Swimmer-v5 takes that of one point of the body.
    Importing this module registers the environment, with episodes of 1,000 steps.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(frame_skip=FRAMES, **settings)
        self.model.opt.timestep = TIMESTEP
        self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        self.model.dof_armature[:] = 0
        self.model.actuator_gear[:, 0] = TORQUE
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, self._get_obs().shape, np.float64)

    def step(self, action: NDArray[np.float32]) -> tuple[Array, np.float64, bool, bool, dict[str, np.float64]]:
        """Moves the swimmer for 0.05 seconds."""
        self.do_simulation(action, self.frame_skip)
        mujoco.mj_forward(self.model, self.data)
        mujoco.mj_subtreeVel(self.model, self.data)
        reward = self.data.subtree_linvel[TORSO, 0] - EFFORT_COST * np.square(action).sum()
        return self._get_obs(), np.float64(reward), False, False, {}

    def reset_model(self) -> Array:
        """Starts near the stretched pose, at rest but for noise."""
        noise = self.np_random.normal(size=(2, self.model.nq))
        position, velocity = self.init_qpos + POSITION_NOISE * noise[0], self.init_qvel + VELOCITY_NOISE * noise[1]
        self.set_state(position, velocity)  # type: ignore[no-untyped-call]
        return self._get_obs()

    def _get_obs(self) -> Array:
        return np.concatenate([self.data.qpos, self.data.qvel, self.data.subtree_com[TORSO]])


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point=f"{__name__}:RllabSwimmer", max_episode_steps=1000)
