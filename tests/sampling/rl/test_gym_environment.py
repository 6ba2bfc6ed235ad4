import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from offmap.sampling.rl import GymEnvironment

gym = pytest.importorskip("gymnasium")


def test_actions_are_scaled_to_the_bounds_and_rewards_are_the_environments() -> None:
    environment = GymEnvironment("Pendulum-v1", n_envs=2)
    states = environment.reset(seed=5)
    result = environment.step(torch.tensor([[-1.0], [0.5]]))
    for copy, torque in enumerate((-2.0, 1.0)):
        alone = gym.make("Pendulum-v1")
        start, _ = alone.reset(seed=5 + copy)
        reached, reward, *_ = alone.step(np.array([torque], dtype=np.float32))
        assert np.array_equal(states[copy].numpy(), start)
        assert np.allclose(result.state[copy].numpy(), reached)
        assert float(result.reward[copy]) == pytest.approx(reward)


def test_an_end_by_time_keeps_the_last_state_and_is_no_termination() -> None:
    environment = GymEnvironment("Pendulum-v1", n_envs=1)
    environment.reset(seed=0)
    alone = gym.make("Pendulum-v1")
    alone.reset(seed=0)
    for _ in range(200):
        result = environment.step(torch.zeros(1, 1))
        reached, *_ = alone.step(np.zeros(1, dtype=np.float32))
    assert result.ended.tolist() == [True]
    assert result.terminated.tolist() == [False]
    assert np.allclose(result.state[0].numpy(), reached, atol=1e-5)
    assert not torch.allclose(environment.states, result.state)


def test_discrete_actions_are_refused() -> None:
    with pytest.raises(ValueError, match="name must be an environment with flat boxes"):
        GymEnvironment("CartPole-v1")


def test_importing_the_package_does_not_import_gymnasium() -> None:
    code = "import sys, offmap.sampling, offmap.sampling.rl; print('gymnasium' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_gymnasium_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match=r"pip install '.\[rl\]'"):
        GymEnvironment("Pendulum-v1")


@pytest.mark.parametrize("n_envs", [0, -1, 1.5])
def test_a_number_of_copies_that_is_none_is_refused(n_envs: Any) -> None:
    with pytest.raises(ValueError, match="n_envs must be an integer at least 1"):
        GymEnvironment("Pendulum-v1", n_envs=n_envs)


@pytest.mark.parametrize("name", ["Foo-v9", "Pendulum-v7", "no name!", 5])
def test_a_name_that_gymnasium_does_not_know_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match=f"name must be an environment that gymnasium can make; got {name!r}: ."):
        GymEnvironment(name)
