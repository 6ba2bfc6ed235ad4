import pytest
import torch

from offmap.random_state import local_seed
from offmap.sampling.rl import StepResult
from offmap.sampling.rl.experience import Experience
from offmap.sampling.rl.replay_buffer import ReplayBuffer
from tests.sampling.rl.plane import Plane


def numbered(values: list[float]) -> tuple[torch.Tensor, torch.Tensor, StepResult]:
    """Transitions each of whose parts identifies it."""
    x = torch.tensor(values)
    return x[:, None], 10 * x[:, None], StepResult(100 * x[:, None], 1000 * x, x > 2, x > 2)


def test_transitions_stay_together() -> None:
    buffer = ReplayBuffer(8, 1, 1)
    buffer.add(*numbered([1.0, 2.0, 3.0]))
    with local_seed(0):
        states, actions, rewards, following, terminated = buffer.draw(50)
    assert set(states[:, 0].tolist()) == {1.0, 2.0, 3.0}
    assert torch.equal(actions, 10 * states)
    assert torch.equal(following, 100 * states)
    assert torch.equal(rewards, 1000 * states[:, 0])
    assert torch.equal(terminated, (states[:, 0] > 2).float())


def test_new_transitions_replace_the_oldest() -> None:
    buffer = ReplayBuffer(4, 1, 1)
    for start in (1.0, 4.0):
        buffer.add(*numbered([start, start + 1, start + 2]))
    with local_seed(0):
        states = buffer.draw(100)[0]
    assert len(buffer) == 4
    assert set(states[:, 0].tolist()) == {3.0, 4.0, 5.0, 6.0}


def test_experience_stores_transitions_and_the_returns_of_whole_episodes() -> None:
    environment, buffer = Plane(n_envs=3), ReplayBuffer(1000, 2, 2)
    environment.reset(seed=0)
    experience = Experience(environment, torch.zeros_like, buffer, steps=61, updates=2, batch_size=5)
    batches = list(experience)
    assert len(batches) == len(experience) == 122
    assert len(buffer) == 183
    assert len(experience.returns) == 6
    # Standing still costs the same in both episodes of a copy.
    assert experience.returns == pytest.approx([-30 * x.square().sum().item() for x in environment.starts] * 2)
    assert all(torch.equal(states, following) for states, _, _, following, _ in batches)


def test_exploring_copies_act_at_random_and_their_returns_are_not_recorded() -> None:
    environment, buffer = Plane(n_envs=4), ReplayBuffer(1000, 2, 2)
    environment.reset(seed=0)
    experience = Experience(environment, torch.zeros_like, buffer, steps=30, updates=1, batch_size=200, n_exploring=3)
    with local_seed(0):
        *_, (_, actions, *_) = experience
    assert len(experience.returns) == 1
    assert float((actions.abs().sum(1) > 0).float().mean()) == pytest.approx(0.75, abs=0.1)
    experience.collect(at_random=True)
    assert len(buffer) == 4 * 31
