from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import offmap
from offmap.sampling.rl import GymEnvironment, SoftQAgent, StepResult, evaluate
from offmap.sampling.rl.ras_policy import RASPolicy
from tests.sampling.rl.plane import Plane


class TwoSided:
    """Episodes of one step with the reward $-10 (|a| - 0.6)^2$, so that two actions are equally good."""

    state_dim = action_dim = 1

    def __init__(self, n_envs: int) -> None:
        self.n_envs = n_envs
        self.states = torch.zeros(n_envs, 1)

    def reset(self, seed: int) -> torch.Tensor:
        return self.states

    def step(self, actions: torch.Tensor) -> StepResult:
        over = torch.ones(self.n_envs, dtype=torch.bool)
        return StepResult(self.states, -10 * (actions[:, 0].abs() - 0.6).square(), over, over)


class Counted(TwoSided):
    """Counts its steps."""

    steps = 0

    def step(self, actions: torch.Tensor) -> StepResult:
        self.steps += 1
        return super().step(actions)


def small(**changes: Any) -> SoftQAgent:
    few = {"steps": 500, "warmup": 300, "batch_size": 32, "policy_batch_size": 8, "hidden": (16,), "random_state": 0}
    return SoftQAgent(**{**few, **changes})


@pytest.mark.parametrize("policy", ["ras", "svgd"])
def test_a_policy_keeps_both_good_actions(policy: str) -> None:
    agent = SoftQAgent.modern(
        policy=policy,
        steps=10_000,
        warmup=2000,
        hidden=(32, 32),
        temperature=1.5,
        lr=4e-3,
        batch_size=64,
        policy_batch_size=2,
        particles=32,
        value_particles=2,
        random_state=0,
    ).fit(TwoSided(n_envs=20))
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
    first, second = (small().fit(Plane(n_envs=10)) for _ in range(2))
    states = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.best(states), second.best(states))
    assert np.array_equal(first.returns_, second.returns_)
    other = small(random_state=1).fit(Plane(n_envs=10))
    assert not torch.equal(first.best(states), other.best(states))


def seeded(agent: SoftQAgent) -> partial[torch.Tensor]:
    return partial(agent.act, rng=torch.Generator().manual_seed(5))


def test_evaluation_is_deterministic() -> None:
    agent = small().fit(Plane(n_envs=10))
    for make in (seeded, lambda agent: agent.best):
        first, second = (evaluate(make(agent), Plane(n_envs=8), seed=5) for _ in range(2))
        assert torch.equal(first.trajectories, second.trajectories)
    assert not torch.equal(first.trajectories, evaluate(agent.best, Plane(n_envs=8), seed=6).trajectories)


@pytest.mark.parametrize(("steps", "epochs", "learnt"), [(320, 1, 2), (1350, 1, 100), (2300, 2, 200)])
def test_every_step_is_counted(steps: int, epochs: int, learnt: int) -> None:
    """After 300 random steps the others are trained on, ten copies at a time."""
    environment = Counted(n_envs=10)
    agent = small(steps=steps, policy_batch_size=1).fit(environment)
    assert len(agent.history_["q"]) == epochs
    assert environment.steps == 30 + learnt
    assert len(agent.returns_) == 10 * environment.steps


def test_candidates_are_chosen_by_their_value(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, states = small(candidates=2).fit(TwoSided(n_envs=10)), torch.zeros(20_000, 1)
    rng = torch.Generator().manual_seed(0)
    middle = agent.sample(states, rng=rng).median()
    monkeypatch.setattr(agent.q_, "lowest", lambda states, actions: 1.5 * (actions[..., 0] > middle))
    # Both are above the median, or one of them is and it is chosen.
    expected = 1 / 4 + 1 / 2 / (1 + np.exp(-1.5))
    assert float((agent.act(states, rng) > middle).float().mean()) == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("policy", ["ras", "svgd"])
def test_save_and_load(tmp_path: Path, policy: str) -> None:
    agent = small(policy=policy, twin=True).fit(Plane(n_envs=10))
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
        small(**wrong).fit(Plane(n_envs=10))


def test_a_gymnasium_environment() -> None:
    pytest.importorskip("gymnasium")
    agent = small().fit(GymEnvironment("Pendulum-v1", n_envs=2))
    episodes = evaluate(agent.best, GymEnvironment("Pendulum-v1", n_envs=3), seed=0)
    assert episodes.trajectories.shape == (201, 3, 3)
    assert -2000 < episodes.returns.min() <= episodes.returns.max() < 0


def test_the_policy_trains_on_its_own_batch_size(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, original = set(), RASPolicy._generator_loss

    def recorded(self: RASPolicy, states: torch.Tensor, log_density: Any) -> dict[str, torch.Tensor]:
        sizes.add(len(states))
        return original(self, states, log_density)

    monkeypatch.setattr(RASPolicy, "_generator_loss", recorded)
    small(steps=340, policy_batch_size=5).fit(Plane(n_envs=10))
    assert sizes == {5}
