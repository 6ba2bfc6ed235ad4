"""Soft Q-learning on locomotion: how well a policy learns to swim, run and hop."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from offmap.sampling.rl import GymEnvironment, evaluate
from offmap_bench.table import Table
from offmap_bench.tables.sampling_rl import SAC, SOURCE, Act, Learnt, Uniform, learn, run_episodes, soft_q

# Gymnasium imports the module before the colon, which registers the environment after it.
RLLAB = "Swimmer of rllab"
NAMES = {RLLAB: "offmap_bench.rllab_swimmer:offmap_bench/RllabSwimmer-v0"}
# A learning curve: the mean return of the training episodes in each third of training.
CURVE = ("return_third_1", "return_third_2", "return_third_3")


def curve(returns: Sequence[float]) -> dict[str, float]:
    """The points of the learning curve, nan where no episode has ended."""
    parts = np.array_split(np.asarray(returns, dtype=float), len(CURVE))
    return {label: float(part.mean()) if len(part) else math.nan for label, part in zip(CURVE, parts, strict=True)}


def measure_locomotion(method: Any, column: str, seed: int) -> dict[str, float]:
    """The mean return of 20 episodes with the best action and with drawn ones, and a curve of training returns."""
    name = NAMES.get(column, column)
    act, best, returns = learn(method, name, seed)
    drawn, chosen = (run_episodes(policy, GymEnvironment(name, n_envs=20)) for policy in (act, best))
    ends = {"return": float(chosen.returns.mean()), "return_drawn": float(drawn.returns.mean())}
    return ends | curve(returns)


def sine(period: float, lag: float, joints: int) -> Act:
    """A gait that ignores the state: a full sine at each joint, ``lag`` later from joint to joint."""
    steps, lags = count(), lag * torch.arange(joints)

    def act(states: Tensor) -> Tensor:
        return torch.sin(2 * math.pi * next(steps) / period - lags).expand(len(states), joints)

    return act


@dataclass(frozen=True)
class SineGait:
    """Draws gaits of two numbers and keeps the best: what an environment returns without any learning.

    Args:
        trials: Gaits, each judged by one episode.
        shortest: The shortest period in environment steps.
        longest: The longest period.
    """

    trials: int = 30
    shortest: float = 10.0
    longest: float = 100.0

    def learn(self, name: str, seed: int) -> Learnt:
        """Draws periods evenly by their logarithm and lags evenly; the best action is that of the best gait."""
        rng, environment = np.random.default_rng(seed), GymEnvironment(name)
        periods = np.exp(rng.uniform(math.log(self.shortest), math.log(self.longest), self.trials))
        gaits = [(float(period), rng.uniform(-math.pi, math.pi), environment.action_dim) for period in periods]
        returns = [float(evaluate(sine(*gait), environment, seed).returns.mean()) for gait in gaits]
        best = gaits[int(np.argmax(returns))]
        return Learnt(sine(*best), sine(*best), returns)


# The reward scale of 30 that the released code of soft Q-learning has for these tasks, as a temperature.
RUNNING: dict[str, Any] = {"steps": 30_000, "hidden": (64, 64), "temperature": 1 / 30}
LONGER_STEPS = 4 * RUNNING["steps"]
METRICS = ("return", "return_drawn", *CURVE)
PRINTED = {
    ("RAS", RLLAB, "return"): 148,
    ("SVGD", RLLAB, "return"): 125,
    ("RAS", "HalfCheetah-v5", "return"): 6550,
    ("SVGD", "HalfCheetah-v5", "return"): 2600,
    ("RAS", "Hopper-v5", "return"): 2200,
    ("SVGD", "Hopper-v5", "return"): 1350,
}
MUJOCO = Table(
    name="mujoco",
    source=f"{SOURCE}, section 5.6, soft Q-learning",
    caption="Locomotion: the mean return of 20 episodes.",
    rows={
        "RAS": soft_q(**RUNNING),
        "SVGD": soft_q(policy="svgd", **RUNNING),
        "SAC": SAC(steps=30_000, hidden=(64, 64)),
        "random": Uniform(),
        "sine gait, best of 30": SineGait(),
    },
    columns=(RLLAB, "Swimmer-v5", "HalfCheetah-v5", "Hopper-v5"),
    metrics=METRICS,
    measure=measure_locomotion,
    seeds={"cpu": range(3), "paper": range(3)},
    profiles={
        "cpu": {},
        "paper": {
            **{"steps": 1_000_000, "batch_size": 128, "policy_batch_size": 128, "lr": 3e-4, "critic_lr": 1e-3},
            **{
                "hidden": (128, 128),
                "twin": False,
                "target": "hard",
                "proposal": "uniform",
                "standardise_actions": False,
            },
        },
    },
    printed=PRINTED,
    notes="Needs MuJoCo (pip install --editable './benchmarks[mujoco]'); these runs had version 4.0.0. The cpu "
    "profile has 30,000 environment steps, the first 1,000 at random, where the paper has a million: compare the "
    "rows, not the printed numbers. These are read off the paper's curves, of older versions of the environments. "
    "Its Swimmer is taken to be that of rllab, which the released code of soft Q-learning has: torques of 50, steps of "
    "0.05 s, and as reward the velocity of the centre of mass. Swimmer-v5 has three times the torque and rewards the "
    "velocity of one point of the body. Ten copies run in parallel, with one training step per step of all ten: 2,900 "
    "training steps, for SAC too. return takes the action of highest Q among 16 drawn with fixed noise (SAC: the mean "
    "action), return_drawn draws. The other three are the learning curve: the mean return of the training episodes in "
    "each third of training. Networks of two layers of 64 units for all. Other settings are those of the pendulum, but "
    "for the temperature, which is that of the released code of soft Q-learning (a reward scale of 30); SAC adapts its "
    "own. None of them was tuned on these tasks. The sine gait ignores the state: period and lag between the joints "
    "are the best of 30 drawn at random, each judged by one episode, so that it sees as many steps as the others. "
    "No learner swims in rllab's water after 30,000 steps, SAC included, though a gait of two numbers does; in the "
    "released code the Swimmer has 500,000 steps. On Swimmer-v5 all three stay below 50, as is known of learners with "
    "a discount of 0.99, where the gait has more than twice as much. The same seed of RAS on Swimmer-v5 had 43 with "
    "an earlier version of MuJoCo and 38 with this one: differences in rounding alone move a return by five.",
    higher_is_better=dict.fromkeys(METRICS, True),
    formats=dict.fromkeys(METRICS, ".0f"),
)

LONGER = Table(
    name="mujoco-longer",
    source=MUJOCO.source,
    caption="Locomotion after four times the steps: the mean return of 20 episodes.",
    rows={name: clone(MUJOCO.rows[name]).set_params(steps=LONGER_STEPS) for name in ("RAS", "SVGD")},
    columns=("HalfCheetah-v5", "Hopper-v5", RLLAB),
    metrics=METRICS,
    measure=measure_locomotion,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    printed=PRINTED,
    notes="120,000 environment steps and 11,900 training steps instead of 30,000 and 2,900; all else as in `mujoco`.",
    higher_is_better=MUJOCO.higher_is_better,
    formats=MUJOCO.formats,
)

TABLES = (MUJOCO, LONGER)
