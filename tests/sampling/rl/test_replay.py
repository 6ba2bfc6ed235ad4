import pytest
import torch

from offmap.random_state import local_seed
from offmap.sampling.rl.experience import Experience
from offmap.sampling.rl.multi_goal import MultiGoalWorld
from offmap.sampling.rl.replay import Replay
from offmap.sampling.rl.world import Outcome


def numbered(values: list[float]) -> tuple[torch.Tensor, torch.Tensor, Outcome]:
    """Transitions each of whose parts tells which one it is."""
    x = torch.tensor(values)
    return x[:, None], 10 * x[:, None], Outcome(100 * x[:, None], 1000 * x, x > 2, x > 2)


def test_transitions_stay_together() -> None:
    replay = Replay(8, 1, 1)
    replay.add(*numbered([1.0, 2.0, 3.0]))
    with local_seed(0):
        states, actions, rewards, following, terminated = replay.draw(50)
    assert set(states[:, 0].tolist()) == {1.0, 2.0, 3.0}
    assert torch.equal(actions, 10 * states)
    assert torch.equal(following, 100 * states)
    assert torch.equal(rewards, 1000 * states[:, 0])
    assert torch.equal(terminated, (states[:, 0] > 2).float())


def test_the_oldest_give_way() -> None:
    replay = Replay(4, 1, 1)
    for start in (1.0, 4.0):
        replay.add(*numbered([start, start + 1, start + 2]))
    with local_seed(0):
        states = replay.draw(100)[0]
    assert len(replay) == 4
    assert set(states[:, 0].tolist()) == {3.0, 4.0, 5.0, 6.0}


def test_experience_remembers_what_it_did_and_the_returns_of_whole_episodes() -> None:
    world, replay = MultiGoalWorld(copies=3), Replay(1000, 2, 2)
    world.reset(seed=0)
    experience = Experience(world, torch.zeros_like, replay, steps=31, updates=2, batch_size=5)
    batches = list(experience)
    assert len(batches) == len(experience) == 62
    assert len(replay) == 93
    assert len(experience.returns) == 3
    assert all(-760 < total < -650 for total in experience.returns)
    assert all(torch.equal(states, following) for states, _, _, following, _ in batches)


def test_exploring_copies_act_at_random_and_their_returns_are_not_noted() -> None:
    world, replay = MultiGoalWorld(copies=4), Replay(1000, 2, 2)
    world.reset(seed=0)
    experience = Experience(world, torch.zeros_like, replay, steps=30, updates=1, batch_size=200, exploring=3)
    with local_seed(0):
        *_, (_, actions, *_) = experience
    assert len(experience.returns) == 1
    assert float((actions.abs().sum(1) > 0).float().mean()) == pytest.approx(0.75, abs=0.1)
    experience.live(at_random=True)
    assert len(replay) == 4 * 31
