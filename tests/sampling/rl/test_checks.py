"""What environments return and agents are given: harmless forms are accepted, others are named."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from offmap.sampling.rl import SoftQAgent, StepResult, evaluate
from tests.sampling.rl.plane import Plane


def as_arrays(result: StepResult) -> StepResult:
    parts: Any = [part.numpy() for part in result]
    return StepResult(*parts)


class Changed(Plane):
    """A plane whose steps return another form of the same numbers."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        super().__init__(n_envs=10)
        self.change = change

    def step(self, actions: torch.Tensor) -> Any:
        return self.change(super().step(actions))


class WithoutTensors(Plane):
    """A plane that speaks NumPy, in double precision."""

    def reset(self, seed: int) -> Any:
        super().reset(seed)
        return self.starts.double().numpy()

    def step(self, actions: torch.Tensor) -> Any:
        return as_arrays(super().step(actions))


def agent() -> SoftQAgent:
    return SoftQAgent(steps=60, warmup=40, batch_size=8, policy_batch_size=2, hidden=(8,), random_state=0)


STATES = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
FORMS: dict[str, Callable[[Any], Any]] = {
    "column of rewards": lambda result: result._replace(reward=result.reward[:, None]),
    "double rewards": lambda result: result._replace(reward=result.reward.double()),
    "array of rewards": lambda result: result._replace(reward=result.reward.numpy().astype(float)),
    "list of rewards": lambda result: result._replace(reward=result.reward.tolist()),
    "double states": lambda result: result._replace(state=result.state.double()),
    "arrays": as_arrays,
    "numbers for flags": lambda result: result._replace(terminated=result.terminated.int(), ended=result.ended.float()),
}


@pytest.fixture(scope="module")
def fitted() -> SoftQAgent:
    return agent().fit(Plane(n_envs=10))


@pytest.mark.parametrize("form", FORMS)
def test_other_forms_of_the_same_step_give_the_same_agent(form: str, fitted: SoftQAgent) -> None:
    other = agent().fit(Changed(FORMS[form]))
    assert torch.equal(other.best(STATES), fitted.best(STATES))
    first, second = (evaluate(fitted.best, place) for place in (Plane(n_envs=10), Changed(FORMS[form])))
    assert torch.equal(first.returns, second.returns)
    assert torch.equal(first.trajectories, second.trajectories)


def test_an_environment_may_reset_to_arrays(fitted: SoftQAgent) -> None:
    first, second = (evaluate(fitted.best, place) for place in (Plane(n_envs=3), WithoutTensors(n_envs=3)))
    assert torch.equal(first.trajectories, second.trajectories)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r._replace(reward=r.reward[:3]), r"reward must be \(10,\), one number per copy; got shape \(3,\)"),
        (lambda r: r._replace(reward=torch.zeros(())), r"reward must be \(10,\), .*; got shape \(\)"),
        (lambda r: r._replace(reward="high"), "reward must be a tensor or an array of numbers; got a str"),
        (lambda r: r._replace(reward=r.reward / 0 * 0), "reward must be finite; got nan for 10 of 10 values"),
        (lambda r: r._replace(state=r.state[:, :1]), r"state of step must be \(n, 2\)"),
        (lambda r: r._replace(state=r.state * torch.nan), "state of step must be finite"),
        (lambda r: r._replace(ended=r.ended[:2]), r"ended must be \(10,\)"),
        (lambda r: tuple(r), r"step must return StepResult\(state, reward, terminated, ended\); got a tuple"),
    ],
)
def test_wrong_steps_are_named(change: Callable[[Any], Any], message: str, fitted: SoftQAgent) -> None:
    with pytest.raises(ValueError, match=message):
        agent().fit(Changed(change))
    with pytest.raises(ValueError, match=message):
        evaluate(fitted.best, Changed(change))


@pytest.mark.parametrize("wrong", [5, None, "Pendulum-v1"])
def test_what_is_no_environment_is_refused(wrong: Any, fitted: SoftQAgent) -> None:
    with pytest.raises(ValueError, match=r"environment must be a GymEnvironment or have .*; got a .* without n_envs"):
        agent().fit(wrong)
    with pytest.raises(ValueError, match="environment must be"):
        evaluate(fitted.best, wrong)


METHODS: dict[str, Callable[[SoftQAgent, Any], torch.Tensor]] = {
    "best": lambda model, states: model.best(states),
    "act": lambda model, states: model.act(states, torch.Generator().manual_seed(0)),
    "sample": lambda model, states: model.sample(states, 3, torch.Generator().manual_seed(0)),
}


@pytest.mark.parametrize("method", METHODS)
def test_states_may_be_arrays(method: str, fitted: SoftQAgent) -> None:
    expected = METHODS[method](fitted, STATES)
    for states in (STATES.numpy(), STATES.double(), STATES.tolist(), np.asfortranarray(STATES.double().numpy())):
        assert torch.equal(METHODS[method](fitted, states), expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("states", "message"),
    [
        (torch.zeros(4, 3), r"states must be \(n, 2\), one row per state; got shape \(4, 3\)"),
        (np.zeros(2), r"states must be \(n, 2\), one row per state; got shape \(2,\)"),
        (torch.full((1, 2), torch.nan), "states must be finite"),
        ("north", "states must be a tensor or an array of numbers"),
    ],
)
def test_states_of_another_form_are_named(method: str, states: Any, message: str, fitted: SoftQAgent) -> None:
    with pytest.raises(ValueError, match=message):
        METHODS[method](fitted, states)
