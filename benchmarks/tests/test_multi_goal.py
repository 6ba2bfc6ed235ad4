import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from offmap.random_state import local_seed
from offmap.sampling.rl import GymEnvironment, evaluate
from offmap_bench.multi_goal import HORIZON, MultiGoalEnvironment, arrivals, move, nearest_goal

GOALS = ((5.0, 0.0), (-5.0, 0.0), (0.0, 5.0), (0.0, -5.0))


@pytest.mark.parametrize(
    ("position", "action", "reached", "reward", "arrived"),
    [
        # 30 · 0 + 25
        ((0.0, 0.0), (0.0, 0.0), (0.0, 0.0), -25.0, False),
        # 30 · (0.25 + 0.25) + (4.5² + 0.5²)
        ((0.0, 0.0), (0.5, 0.5), (0.5, 0.5), -15.0 - 20.5, False),
        # At a distance of 1 the goal is not reached yet; closer than 1 it is.
        ((0.0, 3.0), (0.0, 1.0), (0.0, 4.0), -30.0 - 1.0, False),
        ((0.0, 3.5), (0.0, 1.0), (0.0, 4.5), -30.0 - 0.25 + 10.0, True),
        ((-4.5, 0.0), (0.0, 0.0), (-4.5, 0.0), -0.25 + 10.0, True),
        # Actions beyond 1 count as 1, positions end at 7.
        ((0.0, -6.5), (0.0, -3.0), (0.0, -7.0), -30.0 - 4.0, False),
    ],
)
def test_a_step_by_hand(
    position: tuple[float, float],
    action: tuple[float, float],
    reached: tuple[float, float],
    reward: float,
    arrived: bool,
) -> None:
    where, paid, there = move(torch.tensor([position]), torch.tensor([action]))
    assert where[0].tolist() == list(reached)
    assert float(paid) == pytest.approx(reward)
    assert bool(there) is arrived


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-7, 7), min_size=2, max_size=2), st.lists(st.floats(-1, 1), min_size=2, max_size=2))
def test_a_step_is_the_formula(position: list[float], action: list[float]) -> None:
    where, paid, there = move(torch.tensor([position]), torch.tensor([action]))
    x, y = (min(max(p + a, -7.0), 7.0) for p, a in zip(position, action, strict=True))
    squared = min((x - goal_x) ** 2 + (y - goal_y) ** 2 for goal_x, goal_y in GOALS)
    bonus = 10.0 if bool(there) else 0.0
    assert float(paid) == pytest.approx(-30 * (action[0] ** 2 + action[1] ** 2) - squared + bonus, abs=1e-3)
    assert bool(there) is (squared < 1) or squared == pytest.approx(1, abs=1e-4)
    assert where[0].tolist() == pytest.approx([x, y], abs=1e-5)


def best_return(count: int) -> float:
    """The return of the best ``count`` steps straight from the origin to where a goal begins."""

    def cost(steps: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        return float(30 * (steps**2).sum() + ((5 - steps.cumsum()) ** 2).sum() - 10)

    arrives = LinearConstraint(np.ones((1, count)), 4, 4)
    return -float(
        minimize(cost, np.full(count, 4 / count), method="SLSQP", constraints=[arrives], bounds=[(0, 1)] * count).fun
    )


def test_the_best_way_is_worth_minus_110() -> None:
    assert max(best_return(count) for count in range(5, 13)) == pytest.approx(-110, abs=0.1)


def test_standing_still_at_the_origin_is_worth_minus_750() -> None:
    total, position = 0.0, torch.zeros(1, 2)
    for _ in range(HORIZON):
        position, reward, _ = move(position, torch.zeros(1, 2))
        total += float(reward)
    assert total == -750


def test_random_actions_are_worth_about_minus_845() -> None:
    with local_seed(0):
        episodes = evaluate(lambda states: 2 * torch.rand(len(states), 2) - 1, MultiGoalEnvironment(n_envs=4000))
    assert float(episodes.returns.mean()) == pytest.approx(-845, abs=10)


def test_episodes_end_at_a_goal_or_after_30_steps() -> None:
    environment = MultiGoalEnvironment(n_envs=2)
    environment.reset(seed=0)
    for step in range(1, HORIZON + 1):
        result = environment.step(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
        # Steps of 1 from near the origin arrive with the fifth, which is closer than 1 to (5, 0).
        assert bool(result.terminated[0]) is (nearest_goal(result.state)[0][0].item() < 1)
        assert result.terminated[1].item() is False
        assert result.ended[1].item() is (step == HORIZON)
    assert environment.states[1].norm() < 0.6


def test_a_copy_that_arrived_starts_anew_and_the_result_keeps_where_it_was() -> None:
    environment = MultiGoalEnvironment(n_envs=1)
    environment.reset(seed=3)
    for _ in range(10):
        result = environment.step(torch.tensor([[0.0, -1.0]]))
        if result.ended:
            break
    assert nearest_goal(result.state)[1].tolist() == [3]
    assert nearest_goal(result.state)[0] < 1
    assert environment.states.norm() < 0.6


def test_the_same_seed_gives_the_same_starts() -> None:
    assert torch.equal(MultiGoalEnvironment(n_envs=5).reset(7), MultiGoalEnvironment(n_envs=5).reset(7))
    assert not torch.equal(MultiGoalEnvironment(n_envs=5).reset(7), MultiGoalEnvironment(n_envs=5).reset(8))


def test_no_copies_is_an_error() -> None:
    with pytest.raises(ValueError, match="n_envs must be an integer at least 1; got 0"):
        MultiGoalEnvironment(n_envs=0)


def test_gymnasium_sees_the_same_task() -> None:
    gym = pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    from offmap_bench.multi_goal_gym import MULTI_GOAL

    assert GymEnvironment(MULTI_GOAL, n_envs=3).reset(seed=0).norm(dim=1).max() < 0.6
    env = gym.make(MULTI_GOAL)
    check_env(env.unwrapped, skip_render_check=True)
    position, _ = env.reset(seed=0)
    assert env.spec is not None
    assert env.spec.max_episode_steps == HORIZON
    expected, reward, _ = move(torch.from_numpy(position)[None], torch.tensor([[0.25, -0.5]]))
    reached, paid, terminated, truncated, _ = env.step(np.array([0.25, -0.5], dtype=np.float32))
    assert np.array_equal(reached, expected[0].numpy())
    assert paid == float(reward)
    assert (terminated, truncated) == (False, False)
    assert isinstance(env.action_space, gym.spaces.Box)


def test_arrivals_counts_goals() -> None:
    headings = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    episodes = evaluate(lambda states: headings, MultiGoalEnvironment(n_envs=5))
    assert arrivals(episodes).tolist() == [2, 1, 1, 0]
