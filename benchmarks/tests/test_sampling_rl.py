"""The tables of soft Q-learning: equal budgets, metrics, and the plot."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure as Drawing
from torch import Tensor

from offmap.sampling.rl import evaluate
from offmap_bench.multi_goal import MultiGoalEnvironment, arrivals
from offmap_bench.table import Table
from offmap_bench.tables import sampling_rl
from offmap_bench.tables.sampling_rl import (
    CONTROL,
    GOALS_TABLE,
    SAC,
    Learnt,
    Uniform,
    draw_trajectories,
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


@pytest.mark.parametrize("table", [GOALS_TABLE, CONTROL])
def test_all_methods_have_the_same_budget_and_networks(table: Table) -> None:
    methods = [method for row, method in table.rows.items() if row != "random"]
    for name in ("steps", "warmup", "hidden", "batch_size", "lr"):
        assert len({getattr(method, name) for method in methods}) == 1


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
