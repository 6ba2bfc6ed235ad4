"""Both policies against densities whose moments are known, and their losses against closed forms."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal
from torch.optim import Adam

from offmap.random_state import local_seed
from offmap.sampling.networks import with_context
from offmap.sampling.references import BetaReference
from offmap.sampling.rl.policy import Policy
from offmap.sampling.rl.ras_policy import RASPolicy
from offmap.sampling.rl.svgd_policy import SVGDPolicy
from offmap.sampling.stein import svgd_direction
from offmap.train import descend

SPREAD = 0.2


class FirstColumn(torch.nn.Module):
    """Generator layers that pass the noise through, whatever the state."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = torch.nn.Parameter(torch.ones(1))

    def forward(self, noise_and_state: Tensor) -> Tensor:
        return self.factor * noise_and_state[..., :1]


def bump(states: Tensor, actions: Tensor) -> Tensor:
    """A Gaussian of standard deviation 0.2 about half the state, far from the edges of the box."""
    return -0.5 * ((actions - 0.5 * states[:, None]) / SPREAD).square().sum(-1)


def learnt(policy: Policy, steps: int, lr: float) -> Tensor:
    step = policy.training_step(bump, lr)
    for _ in range(steps):
        step((2 * torch.rand(32, 1) - 1,))
    return policy.draw(torch.tensor([[-0.8], [0.8]]), 2000).detach()[..., 0]


def ras(cycle_weight: float = 0.0) -> RASPolicy:
    return RASPolicy(1, 1, (32, 32), 16, cycle_weight=cycle_weight, critic_lr=3e-3, standardise_actions=True)


@pytest.mark.parametrize("make", [ras, lambda: SVGDPolicy(1, 1, (32, 32), 16)])
def test_a_policy_learns_the_density_of_each_state(make: Callable[[], Policy]) -> None:
    with local_seed(0):
        drawn = learnt(make(), steps=400, lr=2e-3)
    assert drawn.mean(1).tolist() == pytest.approx([-0.4, 0.4], abs=0.06)
    assert drawn.std(1).tolist() == pytest.approx([SPREAD, SPREAD], abs=0.06)
    assert drawn.abs().max() <= 1


def test_the_cycle_term_is_there_when_asked() -> None:
    states = (torch.zeros(4, 1),)
    with local_seed(0):
        without = RASPolicy(1, 1, (8,), 4).training_step(bump, 1e-3)(states)
        with_cycle = RASPolicy(1, 1, (8,), 4, cycle_weight=0.5).training_step(bump, 1e-3)(states)
    assert without.keys() == {"critic", "policy"}
    assert with_cycle.keys() == {"critic", "policy", "cycle"}
    # An inverse that knows nothing leaves the mean square of the noise, 1, times the weight.
    assert 0.1 < float(with_cycle["cycle"]) < 1.5


def test_the_entropy_term_makes_the_noise_recoverable() -> None:
    with local_seed(1):
        policy = ras(cycle_weight=1.0)
        learnt(policy, 200, 3e-3)
        noise, states = torch.randn(2, 500, 1), torch.tensor([[-0.5], [0.5]])
        with torch.no_grad():
            recovered = policy.inverse(with_context(policy.generator(noise, states), states))
    # Actions that did not depend on the noise would leave its whole variance, 1.
    assert float((noise - recovered).square().mean()) < 0.3


@pytest.mark.parametrize("standardise", [False, True])
def test_the_generators_loss_is_the_log_ratio(standardise: bool) -> None:
    policy = RASPolicy(1, 1, (8,), 64, standardise_actions=standardise)
    states = torch.tensor([[0.2], [-0.4]])
    with local_seed(0):
        term = policy._generator_loss(states, bump)["policy"]
    with local_seed(0):
        actions = policy.draw(states, 64)
    seen = (actions - actions.mean(1, keepdim=True)) / (actions.var(1, keepdim=True, correction=0) + 4e-4).sqrt()
    w = policy.critic(seen if standardise else actions, states)
    ratio = w + bump(states, actions) - BetaReference.fit(actions, -1.0, 1.0).log_prob(actions)
    assert torch.allclose(term, -ratio.mean(), atol=1e-5)


def test_the_critic_finds_the_ratio_of_reference_and_policy() -> None:
    """The policy draws tanh of normal noise, whose density is known: flatter than the Beta of its moments."""
    with local_seed(0):
        policy = RASPolicy(1, 1, (32, 32), 256, critic_lr=1e-2, standardise_actions=True)
    policy.generator.layers = torch.nn.Sequential(FirstColumn())
    states = torch.zeros(16, 1)
    with local_seed(0):
        step = descend(Adam(policy.critic.parameters(), lr=1e-2), policy._critic_loss)
        for _ in range(1000):
            step((states,))
        reference = BetaReference.fit(policy.draw(states[:1], 100_000), -1.0, 1.0)
    actions = torch.linspace(-0.8, 0.8, 9)[None, :, None]
    density = Normal(0, 1).log_prob(actions.atanh()) - torch.log1p(-actions.square())
    wanted = reference.log_prob(actions) - density[..., 0]
    found = policy._log_critic(states[:1], actions, reference)
    # A constant critic has an error of 0.12.
    assert torch.allclose(found, wanted, atol=0.08)


def test_an_svgd_step_moves_along_the_svgd_direction() -> None:
    policy = SVGDPolicy(1, 1, (8,), 6)
    states = torch.tensor([[0.3]])
    with local_seed(4):
        actions = policy.draw(states, 6)
    fixed, moved = actions[:, :3].detach(), actions[:, 3:]
    score = -(fixed - 0.15) / SPREAD**2
    direction = svgd_direction(fixed, score, moved.detach())
    wanted = torch.autograd.grad(-(moved * direction).sum() / 3, list(policy.generator.parameters()))
    with local_seed(4):
        policy.training_step(bump, 1e-9)((states,))
    for parameter, gradient in zip(policy.generator.parameters(), wanted, strict=True):
        assert parameter.grad is not None
        assert torch.allclose(parameter.grad, gradient, atol=1e-6)
