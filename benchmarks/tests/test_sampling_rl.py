"""The tables of soft Q-learning: equal budgets, metrics, and the plot."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure as Drawing
from torch import Tensor

from offmap.sampling.rl import evaluate
from offmap_bench.multi_goal import MultiGoalEnvironment, arrivals
from offmap_bench.tables import sampling_rl
from offmap_bench.tables.sampling_rl import (
    CONTROL,
    FARSIGHTED,
    GOALS_TABLE,
    LONGER,
    MUJOCO,
    SAC,
    Learnt,
    Uniform,
    curve,
    draw_trajectories,
    learn,
    measure_goals,
)


class Headings:
    """Sends start i to goal i modulo 3; its best action is to stand still."""

    def learn(self, name: str, seed: int) -> Learnt:
        headings = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])

        def act(states: Tensor) -> Tensor:
            return headings[torch.arange(len(states)) % 3]

        return Learnt(act, torch.zeros_like)


def test_goals_and_shares_are_counted() -> None:
    measured = measure_goals(Headings(), "multi-goal", 0)
    assert measured["goals"] == 3
    assert measured["rarest"] == 0
    # Five steps of 1: −30 · 5 − (16 + 9 + 4 + 1 + 0) + 10, about; near a start of 0.1 it may take four.
    assert measured["return"] == pytest.approx(-165, abs=20)
    assert measured["return_best"] == pytest.approx(-720, abs=20)


def test_random_actions_reach_all_goals_at_a_cost() -> None:
    measured = measure_goals(Uniform(), "multi-goal", 0)
    assert measured["goals"] == 4
    assert -950 < measured["return"] < -750


@pytest.mark.parametrize("table", [GOALS_TABLE, CONTROL, MUJOCO])
def test_all_methods_have_the_same_budget_and_networks(table: Any) -> None:
    methods = [method for row, method in table.rows.items() if row not in ("random", LONGER)]
    for name in ("steps", "warmup", "hidden", "batch_size", "lr"):
        assert len({getattr(method, name) for method in methods}) == 1


def test_the_papers_numbers_are_only_for_the_papers_environments() -> None:
    assert MUJOCO.printed["RAS", "HalfCheetah-v5", "return"] == 6550
    assert MUJOCO.method("RAS", "paper").steps == MUJOCO.method("SAC", "paper").steps == 1_000_000


@pytest.mark.parametrize(
    ("row", "changed"), [(LONGER, {"steps": 120_000}), (FARSIGHTED, {"discount": 0.999})], ids=[LONGER, FARSIGHTED]
)
def test_a_tested_cause_changes_one_setting(row: str, changed: dict[str, float]) -> None:
    assert MUJOCO.rows[row].get_params() == MUJOCO.rows["RAS"].get_params() | changed


def test_a_learning_curve_is_made_of_thirds_of_the_episodes() -> None:
    values = curve([10.0, 20.0, 30.0, 40.0, 50.0, 60.0])
    assert [*values.values()] == [15.0, 35.0, 55.0]
    assert curve([7.0])["return_third_1"] == 7.0
    assert math.isnan(curve([7.0])["return_third_2"])


@pytest.mark.parametrize("row", ["RAS", "SVGD", "SAC"])
def test_locomotion_can_be_measured(row: str) -> None:
    """Ten copies for one episode of 1,000 steps each, nearly all of it warm-up."""
    pytest.importorskip("mujoco", reason="the extra mujoco is not installed")
    pytest.importorskip("stable_baselines3", reason="the extra rivals is not installed")
    method = MUJOCO.method(row, "cpu")
    tiny: dict[str, Any] = {"steps": 10_100, "warmup": 10_080, "hidden": (8,), "batch_size": 8}
    tiny_method = replace(method, **tiny) if isinstance(method, SAC) else method.set_params(**tiny)
    learnt = learn(tiny_method, "Swimmer-v5", seed=0)
    assert len(learnt.returns) == 10
    assert all(-100 < value < 100 for value in learnt.returns)
    assert learnt.best(torch.zeros(4, 8)).shape == (4, 2)


def test_soft_actor_critic_learns_beside() -> None:
    pytest.importorskip("stable_baselines3")
    act, best, _ = SAC(steps=60, warmup=20, hidden=(8,), batch_size=8).learn(sampling_rl.MULTI_GOAL, seed=0)
    states = torch.zeros(4, 2)
    assert act(states).shape == (4, 2)
    assert torch.equal(best(states), best(states))
    assert act(states).abs().max() <= 1


def test_without_stable_baselines_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "stable_baselines3", None)
    with pytest.raises(ImportError, match=r"pip install .*benchmarks\[rivals\]"):
        replace(SAC(steps=10)).learn(sampling_rl.MULTI_GOAL, seed=0)


def test_the_picture_shows_every_path(tmp_path: Path) -> None:
    drawing = Drawing()
    axes = drawing.subplots()
    episodes = evaluate(Headings().learn("", 0).act, MultiGoalEnvironment(n_envs=6))
    draw_trajectories(axes, "three ways", episodes)
    assert len(axes.lines) == 6
    assert axes.get_title() == f"three ways: 3 of 4 goals, return {episodes.returns.mean():.0f}"
    assert arrivals(episodes).tolist() == [2, 2, 2, 0]
    drawing.savefig(tmp_path / "paths.png")
