"""Soft Q-learning with a policy that draws actions in one forward pass."""

from offmap.sampling.rl.agent import SoftQAgent
from offmap.sampling.rl.environment import Environment, StepResult
from offmap.sampling.rl.episodes import Episodes, evaluate
from offmap.sampling.rl.gym_environment import GymEnvironment

__all__ = ["Environment", "Episodes", "GymEnvironment", "SoftQAgent", "StepResult", "evaluate"]
