"""The table of locomotion: equal budgets, learning curves, the swimmer of rllab and a gait that ignores the state."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from offmap.sampling.rl import GymEnvironment
from offmap_bench.tables.sampling_mujoco import (
    LONGER,
    MUJOCO,
    NAMES,
    RLLAB,
    SineGait,
    curve,
    measure_locomotion,
    sine,
)
from offmap_bench.tables.sampling_rl import SAC, learn


def test_all_methods_have_the_same_budget_and_networks() -> None:
    learners = [MUJOCO.rows[row] for row in ("RAS", "SVGD", "SAC")]
    for name in ("steps", "warmup", "hidden", "batch_size", "lr"):
        assert len({getattr(method, name) for method in learners}) == 1
    # Every episode has 1,000 steps.
    assert SineGait().trials * 1000 == learners[0].steps


def test_the_papers_numbers_are_only_for_the_papers_environments() -> None:
    assert MUJOCO.printed["RAS", "HalfCheetah-v5", "return"] == 6550
    assert MUJOCO.method("RAS", "paper").steps == MUJOCO.method("SAC", "paper").steps == 1_000_000


@pytest.mark.parametrize("row", LONGER.rows)
def test_longer_training_changes_the_steps_alone(row: str) -> None:
    assert LONGER.rows[row].get_params() == MUJOCO.rows[row].get_params() | {"steps": 120_000}
    assert LONGER.measure is MUJOCO.measure


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


def test_a_gait_is_a_sine_with_a_lag() -> None:
    act = sine(period=4.0, lag=math.pi / 2, joints=2)
    actions = torch.stack([act(torch.zeros(3, 8)) for _ in range(4)])
    assert actions.shape == (4, 3, 2)
    torch.testing.assert_close(actions[:, 0, 0], torch.tensor([0.0, 1.0, 0.0, -1.0]), atol=1e-6, rtol=0)
    torch.testing.assert_close(actions[1:, 0, 1], actions[:-1, 0, 0], atol=1e-6, rtol=0)


@pytest.mark.parametrize("column", [RLLAB, "Swimmer-v5"])
def test_a_gait_swims(column: str) -> None:
    pytest.importorskip("mujoco", reason="the extra mujoco is not installed")
    assert measure_locomotion(SineGait(trials=4, shortest=50.0, longest=60.0), column, 0)["return"] > 20


def test_the_swimmer_of_rllab_is_paid_for_the_motion_of_its_centre_of_mass() -> None:
    pytest.importorskip("mujoco", reason="the extra mujoco is not installed")
    environment = GymEnvironment(NAMES[RLLAB])
    before, paid = environment.reset(0)[0], 0.0
    act = sine(period=60.0, lag=math.pi / 3, joints=2)
    for _ in range(400):
        action = act(environment.states)
        result = environment.step(action)
        paid += float(result.reward[0]) + 0.005 * float(action[0].square().sum())
    # Observations end with the centre of mass; a step takes 0.05 s.
    moved = float(environment.states[0, -3] - before[-3])
    assert moved > 1
    assert paid * 0.05 == pytest.approx(moved, rel=0.02)


def test_the_swimmer_of_rllab_starts_stretched_and_nearly_at_rest() -> None:
    pytest.importorskip("mujoco", reason="the extra mujoco is not installed")
    states = GymEnvironment(NAMES[RLLAB], n_envs=50).reset(0)
    assert states.shape == (50, 13)
    assert float(states[:, :5].std()) == pytest.approx(0.01, rel=0.2)
    assert float(states[:, 5:10].std()) == pytest.approx(0.1, rel=0.2)
