import math

import pytest
import torch
from torch import Tensor, nn

from offmap.random_state import local_seed
from offmap.sampling.rl.proposals import adaptive, uniform
from offmap.sampling.rl.soft_q import QLearning, SoftQ
from offmap.sampling.rl.svgd_policy import SVGDPolicy
from offmap.train import Batch


class Quadratic(nn.Module):
    """A head whose value is known: $-c (a_1^2 + a_2^2)$, whatever the state."""

    def __init__(self, curvature: float) -> None:
        super().__init__()
        self.curvature = nn.Parameter(torch.tensor(curvature))

    def forward(self, pairs: Tensor) -> Tensor:
        return -self.curvature * pairs[..., :2].square().sum(-1, keepdim=True)


def quadratic(*curvatures: float) -> SoftQ:
    q = SoftQ(1, 2, (4,), heads=len(curvatures))
    q.heads = nn.ModuleList(Quadratic(curvature) for curvature in curvatures)
    return q


def closed_form(curvature: float) -> float:
    return 2 * math.log(math.sqrt(math.pi / curvature) * math.erf(math.sqrt(curvature)))


def test_the_value_is_the_log_of_the_integral() -> None:
    with local_seed(0):
        value = quadratic(3.0).value(torch.zeros(4, 1), *uniform(200_000, 2)(torch.zeros(4, 1)))
    assert value.tolist() == pytest.approx([closed_form(3.0)] * 4, abs=0.01)


@pytest.mark.parametrize("curvature", [3.0, 300.0])
def test_adaptive_proposals_give_the_same_value(curvature: float) -> None:
    with local_seed(0):
        propose = adaptive(SVGDPolicy(1, 2, (8,), 16), 100_000, 2)
        value = quadratic(curvature).value(torch.zeros(2, 1), *propose(torch.zeros(2, 1)))
    assert value.tolist() == pytest.approx([closed_form(curvature)] * 2, abs=0.03)


def test_adaptive_proposals_are_closer_where_the_policy_has_made_up_its_mind() -> None:
    with local_seed(0):
        policy, states = SVGDPolicy(1, 2, (8,), 16), torch.zeros(500, 1)
        with torch.no_grad():
            for parameter in policy.generator.layers[-1].parameters():
                parameter.mul_(0.05)
        errors = [
            (quadratic(300.0).value(states, *propose(states)) - closed_form(300.0)).abs().mean().item()
            for propose in (uniform(16, 2), adaptive(policy, 16, 2))
        ]
    assert errors[1] < 0.3 * errors[0]


def test_the_lowest_head_counts() -> None:
    q = quadratic(1.0, 3.0)
    actions = torch.rand(2, 5, 2)
    assert torch.equal(q.lowest(torch.zeros(2, 1), actions), -3 * actions.square().sum(-1))
    assert torch.equal(q.first(torch.zeros(2, 1), actions), -actions.square().sum(-1))


def batch(terminated: float) -> Batch:
    return (
        torch.zeros(2, 1),
        torch.tensor([[0.5, 0.0], [0.0, 1.0]]),
        torch.tensor([4.0, -2.0]),
        torch.ones(2, 1),
        torch.full((2,), terminated),
    )


@pytest.mark.parametrize("terminated", [0.0, 1.0])
def test_the_aim_is_the_reward_in_units_of_the_temperature_and_the_discounted_value(terminated: float) -> None:
    learning = QLearning(quadratic(3.0), temperature=2.0, discount=0.9, propose=uniform(200_000, 2))
    with local_seed(0):
        loss = learning.objective(batch(terminated))["q"]
    future = 0.9 * (1 - terminated) * closed_form(3.0)
    errors = [-0.75 - (2.0 + future), -3.0 - (-1.0 + future)]
    assert loss.item() == pytest.approx(sum(0.5 * error**2 for error in errors) / 2, rel=0.01)


def test_no_gradient_reaches_the_copy() -> None:
    learning = QLearning(quadratic(3.0), temperature=1.0, discount=0.9, propose=uniform(4, 2))
    learning.objective(batch(0.0))["q"].backward()
    assert all(parameter.grad is not None for parameter in learning.q.parameters())
    assert all(parameter.grad is None for parameter in learning.copy.parameters())


def curvatures_of_the_copy(learning: QLearning, steps: int) -> list[float]:
    with torch.no_grad():
        next(learning.q.parameters()).fill_(2.0)
    seen = []
    for _ in range(steps):
        learning.follow()
        seen.append(float(next(learning.copy.parameters())))
    return seen


def test_a_hard_target_jumps() -> None:
    learning = QLearning(quadratic(1.0), temperature=1.0, discount=0.9, propose=uniform(4, 2), every=3)
    assert curvatures_of_the_copy(learning, 4) == [1.0, 1.0, 2.0, 2.0]


def test_a_polyak_target_follows() -> None:
    learning = QLearning(
        quadratic(1.0), temperature=1.0, discount=0.9, propose=uniform(4, 2), target="polyak", rate=0.5
    )
    assert curvatures_of_the_copy(learning, 3) == [1.5, 1.75, 1.875]
