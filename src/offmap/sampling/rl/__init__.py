"""Soft Q-learning with a policy that draws from the exponential of its Q-function in one pass."""

from offmap.sampling.rl.agent import SoftQAgent
from offmap.sampling.rl.episodes import Episodes, arrivals, evaluate
from offmap.sampling.rl.gym_world import GymWorld, gymnasium
from offmap.sampling.rl.multi_goal import MultiGoalWorld
from offmap.sampling.rl.world import Outcome, World

__all__ = [
    "Episodes",
    "GymWorld",
    "MultiGoalWorld",
    "Outcome",
    "SoftQAgent",
    "World",
    "arrivals",
    "evaluate",
    "gymnasium",
]
