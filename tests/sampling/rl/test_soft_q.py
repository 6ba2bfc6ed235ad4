import math

import pytest
import torch
from torch import Tensor, nn

from offmap.random_state import local_seed
from offmap.sampling.rl.proposals import adaptive_proposal, uniform_proposal
from offmap.sampling.rl.soft_q import QLearning, SoftQ
from offmap.sampling.rl.svgd_policy import SVGDPolicy
from offmap.train import Batch


class Quadratic(nn.Module):
    """A Q-network with the value $-c (a_1^2 + a_2^2)$ in every state."""

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
        value = quadratic(3.0).value(torch.zeros(4, 1), *uniform_proposal(200_000, 2)(torch.zeros(4, 1)))
    assert value.tolist() == pytest.approx([closed_form(3.0)] * 4, abs=0.01)


@pytest.mark.parametrize("curvature", [3.0, 300.0])
def test_adaptive_proposals_give_the_same_value(curvature: float) -> None:
    with local_seed(0):
        proposal = adaptive_proposal(SVGDPolicy(1, 2, (8,), 16), 100_000, 2)
        value = quadratic(curvature).value(torch.zeros(2, 1), *proposal(torch.zeros(2, 1)))
    assert value.tolist() == pytest.approx([closed_form(curvature)] * 2, abs=0.03)


def test_adaptive_proposals_are_more_accurate_for_a_narrow_policy() -> None:
    with local_seed(0):
        policy, states = SVGDPolicy(1, 2, (8,), 16), torch.zeros(500, 1)
        with torch.no_grad():
            for parameter in policy.generator.layers[-1].parameters():
                parameter.mul_(0.05)
        errors = [
            (quadratic(300.0).value(states, *proposal(states)) - closed_form(300.0)).abs().mean().item()
            for proposal in (uniform_proposal(16, 2), adaptive_proposal(policy, 16, 2))
        ]
    assert errors[1] < 0.3 * errors[0]


def test_the_lowest_value_is_used() -> None:
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
def test_the_target_is_the_reward_over_the_temperature_plus_the_discounted_value(terminated: float) -> None:
    learning = QLearning(quadratic(3.0), temperature=2.0, discount=0.9, proposal=uniform_proposal(200_000, 2))
    with local_seed(0):
        loss = learning.loss(batch(terminated))["q"]
    future = 0.9 * (1 - terminated) * closed_form(3.0)
    errors = [-0.75 - (2.0 + future), -3.0 - (-1.0 + future)]
    assert loss.item() == pytest.approx(sum(0.5 * error**2 for error in errors) / 2, rel=0.01)


def test_no_gradient_reaches_the_target_network() -> None:
    learning = QLearning(quadratic(3.0), temperature=1.0, discount=0.9, proposal=uniform_proposal(4, 2))
    learning.loss(batch(0.0))["q"].backward()
    assert all(parameter.grad is not None for parameter in learning.q.parameters())
    assert all(parameter.grad is None for parameter in learning.target_q.parameters())


def curvatures_of_the_target(learning: QLearning, steps: int) -> list[float]:
    with torch.no_grad():
        next(learning.q.parameters()).fill_(2.0)
    seen = []
    for _ in range(steps):
        learning.update_target()
        seen.append(float(next(learning.target_q.parameters())))
    return seen


def test_a_hard_target_jumps() -> None:
    learning = QLearning(quadratic(1.0), temperature=1.0, discount=0.9, proposal=uniform_proposal(4, 2), target_every=3)
    assert curvatures_of_the_target(learning, 4) == [1.0, 1.0, 2.0, 2.0]


def test_a_polyak_target_follows() -> None:
    learning = QLearning(
        quadratic(1.0), temperature=1.0, discount=0.9, proposal=uniform_proposal(4, 2), target="polyak", polyak=0.5
    )
    assert curvatures_of_the_target(learning, 3) == [1.5, 1.75, 1.875]
