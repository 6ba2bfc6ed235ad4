"""Soft Q-learning: whether a policy finds all good actions, and how well it learns control."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Circle
from torch import Tensor

from offmap.files import replacing
from offmap.random_state import local_seed
from offmap.sampling.rl import Environment, Episodes, GymEnvironment, SoftQAgent, evaluate
from offmap_bench.figure import Figure
from offmap_bench.multi_goal import BOUND, GOALS, RADIUS, MultiGoalEnvironment, arrivals, nearest_goal
from offmap_bench.rivals import rival
from offmap_bench.table import Table

SOURCE = "Open-World Learning (thesis), chapter 5"
MULTI_GOAL = "offmap_bench/MultiGoal-v0"
# Copies of each environment that run in parallel, if not ten: one training step follows each step of all of them.
N_ENVS = {"Pendulum-v1": 2}
# Seed of the initial states and draws of the evaluation, the same for all methods and seeds.
EVALUATION_SEED = 10_000

Act = Callable[[Tensor], Tensor]


class Learnt(NamedTuple):
    """What a method has learnt.

    Args:
        act: Draws an action per state.
        best: Takes the best action of each state.
        returns: Return of every training episode, in the order they ended.
    """

    act: Act
    best: Act
    returns: Sequence[float] = ()


def make_environment(name: str, n_envs: int) -> Environment:
    """Copies of an environment; the multi-goal task has a faster implementation than gymnasium's."""
    return MultiGoalEnvironment(n_envs) if name == MULTI_GOAL else GymEnvironment(name, n_envs)


def copies(name: str) -> int:
    """Copies of an environment that run in parallel in training."""
    return N_ENVS.get(name, 10)


def run_episodes(act: Act, environment: Environment) -> Episodes:
    """Evaluates a policy with the seed that all methods share, also for its draws from torch's global generator."""
    with local_seed(EVALUATION_SEED):
        return evaluate(act, environment, EVALUATION_SEED)


@dataclass(frozen=True)
class Uniform:
    """Acts at random."""

    def learn(self, name: str, seed: int) -> Learnt:
        """Learns nothing; its best action is random too."""
        action_dim = make_environment(name, 1).action_dim

        def act(states: Tensor) -> Tensor:
            return 2 * torch.rand(len(states), action_dim) - 1

        return Learnt(act, act)


@dataclass(frozen=True)
class SAC:
    """Soft actor-critic of stable-baselines3, with as many environment and training steps as the others.

    Args:
        steps: Environment steps, over all copies.
        warmup: Environment steps with random actions before training starts.
        hidden: Widths of the hidden layers.
        batch_size: Transitions per training step.
        lr: Learning rate.
    """

    steps: int
    warmup: int = 1000
    hidden: tuple[int, ...] = (128, 128)
    batch_size: int = 64
    lr: float = 1e-3

    def learn(self, name: str, seed: int) -> Learnt:
        """Trains a policy, whose best action is the mean action."""
        package, by = "stable-baselines3", "the row SAC"
        make_vec_env = rival("stable_baselines3.common.env_util", package, by).make_vec_env
        with local_seed(seed):
            learner = (
                rival("stable_baselines3", package, by)
                .SAC(
                    "MlpPolicy",
                    make_vec_env(lambda: _gym_env(name), n_envs=copies(name), seed=seed),
                    learning_starts=self.warmup,
                    batch_size=self.batch_size,
                    learning_rate=self.lr,
                    policy_kwargs={"net_arch": list(self.hidden)},
                    # Keeps the return of every training episode, not only of the last hundred.
                    stats_window_size=self.steps,
                    seed=seed,
                    device="cpu",
                )
                .learn(self.steps)
            )
        returns = [float(episode["r"]) for episode in learner.ep_info_buffer]
        return Learnt(_rescaled(learner, deterministic=False), _rescaled(learner, deterministic=True), returns)


def _gym_env(name: str) -> Any:
    import_module("offmap_bench.multi_goal_gym")
    return import_module("gymnasium").make(name)


def _rescaled(learner: Any, *, deterministic: bool) -> Act:
    """The learner's actions, rescaled to [-1, 1]."""

    def act(states: Tensor) -> Tensor:
        actions, _ = learner.predict(states.numpy(), deterministic=deterministic)
        return torch.as_tensor(learner.policy.scale_action(actions), dtype=torch.float32)

    return act


def learn(method: Any, name: str, seed: int) -> Learnt:
    """Trains a row's method."""
    if not isinstance(method, SoftQAgent):
        learnt: Learnt = method.learn(name, seed)
        return learnt
    agent = method.set_params(random_state=seed).fit(make_environment(name, copies(name)))
    # The draws of an evaluation come from torch's global generator, which ``run_episodes`` seeds, as for the others.
    return Learnt(partial(agent.act, rng=torch.default_generator), agent.best, agent.returns_.tolist())


def measure_goals(method: Any, name: str, seed: int) -> dict[str, float]:
    """Goals of 4 reached from 100 starts with drawn actions, the return, and the share of the rarest goal."""
    act, best, _ = learn(method, MULTI_GOAL, seed)
    drawn, chosen = (run_episodes(policy, MultiGoalEnvironment(n_envs=100)) for policy in (act, best))
    counts = arrivals(drawn)
    return {
        "goals": float((counts > 0).sum()),
        "return": float(drawn.returns.mean()),
        "return_sd": float(drawn.returns.std()),
        "rarest": float(counts.min()) / 100,
        "return_best": float(chosen.returns.mean()),
    }


def measure_control(method: Any, name: str, seed: int) -> dict[str, float]:
    """The mean return of 20 episodes with the best action, and with drawn ones."""
    act, best, _ = learn(method, name, seed)
    drawn, chosen = (run_episodes(policy, GymEnvironment(name, n_envs=20)) for policy in (act, best))
    return {"return": float(chosen.returns.mean()), "return_drawn": float(drawn.returns.mean())}


def soft_q(**parameters: Any) -> SoftQAgent:
    """The modern settings with smaller batches, for a slow core."""
    return SoftQAgent.modern(**{"batch_size": 64, "policy_batch_size": 16, **parameters})


LEARNING_GOALS = {"steps": 45_000, "warmup": 5000, "temperature": 4.0, "exploration": 0.3}
GOALS_TABLE = Table(
    name="multi-goal",
    source=f"{SOURCE}, section 5.6, soft Q-learning",
    caption="Four goals, equally good: goals of 4 reached from 100 starts, return, and share of the rarest goal.",
    rows={
        "RAS": soft_q(**LEARNING_GOALS),
        "RAS, one of two": soft_q(**LEARNING_GOALS, candidates=2),
        "SVGD": soft_q(**LEARNING_GOALS, policy="svgd"),
        "SVGD, one of two": soft_q(**LEARNING_GOALS, policy="svgd", candidates=2),
        "SAC": SAC(steps=45_000, warmup=5000),
        "random": Uniform(),
    },
    columns=("multi-goal",),
    metrics=("goals", "return", "return_sd", "rarest", "return_best"),
    measure=measure_goals,
    seeds={"cpu": range(3), "paper": range(10)},
    profiles={"cpu": {}, "paper": {"steps": 105_000, "batch_size": 128, "policy_batch_size": 128}},
    notes=(
        "Goals (±5, 0) and (0, ±5); actions in [−1, 1]², starts N(0, 0.1²), positions kept in [−7, 7]²; the reward "
        "−30‖a‖² − d² with d from the position reached, +10 within 1 of a goal, where the episode ends, else after 30 "
        "steps. So the best return is −110.0, standing still −750, random actions about −831. Ten copies run in "
        "parallel, with one training step per step of all ten: 45,000 environment steps, the first 5,000 at random, "
        "and 4,000 training steps, for SAC too. Three of the ten copies of RAS and SVGD always act at random. Twin "
        "Q-functions, a Polyak target, values by importance sampling from references fitted to the policy's actions; "
        "networks 128-128, 16 particles. return, goals and rarest are those of drawn actions, return_best that of the "
        "particle with the highest Q (SAC: the mean action). The policies do not quite reach the soft optimum: one of "
        "two means that two actions are drawn and one is chosen in proportion to e^(Q/α), in training and after. Two "
        "is the smallest number that helps: a RAS agent of a seed not shown here, trained with one, returned −166, "
        "−144, −135, −131 and −130 with 1, 2, 4, 8 and 16 candidates, and missed a goal with 16. The exact soft "
        "policy, by dynamic programming on a grid, returns −119, −127, −134, −142, −148 at temperatures 1 to 5. Ours "
        "is 4, chosen on a seed not shown here, by goals and return: at 1, without exploring copies and with 26,000 "
        "steps, RAS and SVGD both went to one goal only, with −128 and −130; at 3.5 RAS went to three with −160; at "
        "4, with 31,000 steps, to all four with −161."
    ),
    higher_is_better={"goals": True, "return": True, "rarest": True, "return_best": True},
    formats={"goals": ".1f", "return": ".1f", "return_sd": ".1f", "rarest": ".0%", "return_best": ".1f"},
)

CONTROL = Table(
    name="pendulum",
    source=f"{SOURCE}, section 5.6, soft Q-learning",
    caption="Swinging up a pendulum: mean return of 20 episodes after 20,000 environment steps.",
    rows={
        "RAS": soft_q(steps=20_000, temperature=0.5),
        "SVGD": soft_q(policy="svgd", steps=20_000, temperature=0.5),
        "SAC": SAC(steps=20_000),
    },
    columns=("Pendulum-v1",),
    metrics=("return", "return_drawn"),
    measure=measure_control,
    seeds={"cpu": range(3), "paper": range(10)},
    profiles={"cpu": {}, "paper": {"batch_size": 128, "policy_batch_size": 128}},
    notes=(
        "Not in the paper. Two copies run in parallel, with one training step per step of both. return takes the "
        "action of highest Q among 16 drawn with fixed noise (SAC: the mean action), return_drawn draws. Twin "
        "Q-functions and a Polyak target; networks 128-128 for all. The temperature is the first one tried, on a seed "
        "not shown here."
    ),
    higher_is_better={"return": True, "return_drawn": True},
    formats={"return": ".1f", "return_drawn": ".1f"},
)

TRAJECTORIES = 40
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")


def draw_trajectories(axes: Axes, title: str, episodes: Episodes) -> None:
    """Plots the trajectories over the cost of the plane, each in the colour of the goal nearest to its end."""
    grid = torch.linspace(-BOUND, BOUND, 141)
    points = torch.cartesian_prod(grid, grid)
    cost = nearest_goal(points)[0].square().reshape(141, 141).T
    axes.contour(grid.numpy(), grid.numpy(), cost.numpy(), 12, colors="0.8", linewidths=0.6)
    for episode, goal in enumerate(nearest_goal(episodes.final_states)[1].tolist()):
        axes.plot(*episodes.trajectories[:, episode].T.numpy(), color=COLOURS[goal], linewidth=0.9, alpha=0.8)
    for goal, colour in zip(GOALS.tolist(), COLOURS, strict=True):
        axes.add_patch(Circle((goal[0], goal[1]), RADIUS, color=colour, alpha=0.3, linewidth=0))
    counts, mean = arrivals(episodes), float(episodes.returns.mean())
    axes.set(title=f"{title}: {int((counts > 0).sum())} of 4 goals, return {mean:.0f}", xlabel="x", ylabel="y")
    axes.set(aspect="equal", xlim=(-BOUND, BOUND), ylim=(-BOUND, BOUND))


def draw_goals(path: Path, profile: str) -> None:
    """Trains each method once and plots the trajectories of its drawn actions."""
    names = ("RAS, one of two", "SVGD, one of two", "SAC")
    drawing = Drawing(figsize=(13, 4.6), layout="constrained")
    for axes, name in zip(drawing.subplots(1, len(names)), names, strict=True):
        learnt = learn(GOALS_TABLE.method(name, profile), MULTI_GOAL, seed=0)
        draw_trajectories(axes, name, run_episodes(learnt.act, MultiGoalEnvironment(n_envs=TRAJECTORIES)))
    with replacing(path) as fresh:
        drawing.savefig(fresh, dpi=130)


TABLES = (
    GOALS_TABLE,
    CONTROL,
    Figure(
        name="multi-goal-paths",
        source=GOALS_TABLE.source,
        caption="Forty episodes of each policy from near the origin; circles are goals, grey lines the cost.",
        draw=draw_goals,
    ),
)
