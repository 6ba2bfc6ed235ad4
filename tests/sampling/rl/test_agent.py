from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import offmap
from offmap.sampling.rl import GymWorld, MultiGoalWorld, SoftQAgent, evaluate
from offmap.sampling.rl.world import Outcome


class TwoSided:
    """One step: the action pays $-10 (|a| - 0.6)^2$, so that two actions are best and none is better than the other."""

    state_width = action_width = 1

    def __init__(self, copies: int) -> None:
        self.copies = copies
        self.states = torch.zeros(copies, 1)

    def reset(self, seed: int) -> torch.Tensor:
        return self.states

    def step(self, actions: torch.Tensor) -> Outcome:
        over = torch.ones(self.copies, dtype=torch.bool)
        return Outcome(self.states, -10 * (actions[:, 0].abs() - 0.6).square(), over, over)


class Counted(TwoSided):
    """Counts its steps."""

    steps = 0

    def step(self, actions: torch.Tensor) -> Outcome:
        self.steps += 1
        return super().step(actions)


def small(**changes: Any) -> SoftQAgent:
    few = {"steps": 500, "warmup": 300, "batch_size": 32, "policy_batch": 8, "hidden": (16,), "random_state": 0}
    return SoftQAgent(**{**few, **changes})


@pytest.mark.parametrize("policy", ["ras", "svgd"])
def test_both_ways_stay_open(policy: str) -> None:
    agent = SoftQAgent.modern(
        policy=policy,
        steps=10_000,
        warmup=2000,
        hidden=(32, 32),
        temperature=1.5,
        lr=4e-3,
        batch_size=64,
        policy_batch=2,
        particles=32,
        value_particles=2,
        random_state=0,
    ).fit(TwoSided(copies=20))
    grid = torch.linspace(-0.9, 0.9, 19)[None, :, None]
    with torch.no_grad():
        learnt = agent.q_.first(torch.zeros(1, 1), grid)[0]
    # In units of the temperature.
    assert torch.allclose(learnt, -10 / 1.5 * (grid[0, :, 0].abs() - 0.6).square(), atol=0.6)
    actions = agent.sample(torch.zeros(1, 1), 2000)
    assert 0.15 < float((actions > 0).float().mean()) < 0.85
    assert actions.abs().mean() == pytest.approx(0.56, abs=0.12)
    assert abs(abs(agent.best(torch.zeros(1, 1)).item()) - 0.6) < 0.15


def test_the_same_seed_gives_the_same_agent_and_leaves_the_callers_random_state() -> None:
    before = torch.get_rng_state()
    first, second = (small().fit(MultiGoalWorld(copies=10)) for _ in range(2))
    states = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.best(states), second.best(states))
    assert np.array_equal(first.returns_, second.returns_)
    other = small(random_state=1).fit(MultiGoalWorld(copies=10))
    assert not torch.equal(first.best(states), other.best(states))


def test_evaluation_is_deterministic() -> None:
    agent = small().fit(MultiGoalWorld(copies=10))
    for act in (agent.act, agent.best):
        first, second = (evaluate(act, MultiGoalWorld(copies=8), seed=5) for _ in range(2))
        assert torch.equal(first.paths, second.paths)
    assert not torch.equal(first.paths, evaluate(agent.best, MultiGoalWorld(copies=8), seed=6).paths)


@pytest.mark.parametrize(("steps", "epochs", "learnt"), [(320, 1, 2), (1350, 1, 100), (2300, 2, 200)])
def test_every_step_is_counted(steps: int, epochs: int, learnt: int) -> None:
    """After 300 random steps, those that are left are learnt from, ten copies at a time."""
    world = Counted(copies=10)
    agent = small(steps=steps, policy_batch=1).fit(world)
    assert len(agent.history_["q"]) == epochs
    assert world.steps == 30 + learnt
    assert len(agent.returns_) == 10 * world.steps


def test_of_two_candidates_one_is_taken_by_its_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, states = small(candidates=2).fit(TwoSided(copies=10)), torch.zeros(20_000, 1)
    torch.manual_seed(0)
    middle = agent.sample(states).median()
    monkeypatch.setattr(agent.q_, "lowest", lambda states, actions: 1.5 * (actions[..., 0] > middle))
    # Both are above the middle, or one of them is and it is taken.
    expected = 1 / 4 + 1 / 2 / (1 + np.exp(-1.5))
    assert float((agent.act(states) > middle).float().mean()) == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("policy", ["ras", "svgd"])
def test_save_and_load(tmp_path: Path, policy: str) -> None:
    agent = small(policy=policy, twin=True).fit(MultiGoalWorld(copies=10))
    agent.save(tmp_path / "agent.safetensors")
    restored = offmap.load(tmp_path / "agent.safetensors")
    assert type(restored) is SoftQAgent
    assert np.array_equal(restored.returns_, agent.returns_)
    states = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    assert restored.get_params() == agent.get_params()
    assert torch.equal(restored.best(states), agent.best(states))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"policy": "sac"}, "policy must be 'ras' or 'svgd'"),
        ({"temperature": 0.0}, "temperature must be a number above 0"),
        ({"particles": 0}, "particles must be an integer at least 1"),
        ({"particles": 1}, "particles must be at least 2"),
        ({"warmup": 500}, "warmup must be below steps"),
    ],
)
def test_wrong_parameters(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**wrong).fit(MultiGoalWorld(copies=10))


def test_a_gymnasium_environment() -> None:
    pytest.importorskip("gymnasium")
    agent = small().fit(GymWorld("Pendulum-v1", copies=2))
    played = evaluate(agent.best, GymWorld("Pendulum-v1", copies=3), seed=0)
    assert played.paths.shape == (201, 3, 3)
    assert -2000 < played.returns.min() <= played.returns.max() < 0
