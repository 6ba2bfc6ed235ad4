"""Networks, supports, and the average of weights."""

import torch
from torch import nn
from torch.distributions import Beta

from offmap.sampling.averaging import WeightAverage
from offmap.sampling.log_density import evaluate
from offmap.sampling.networks import Critic, Generator, with_context
from offmap.sampling.support import BoundaryTerms, Squash


def test_a_residual_generator_starts_by_passing_the_noise_on() -> None:
    noise = torch.randn(50, 2)
    generator = Generator(noise_dim=2, dim=2, scale=3.0, residual=True)
    torch.testing.assert_close(generator(noise), 3 * noise)
    wide, narrow = (Generator(noise_dim=k, dim=2, residual=True) for k in (4, 1))
    torch.testing.assert_close(wide(torch.randn(5, 4)).shape, torch.Size([5, 2]))
    assert (narrow(torch.randn(5, 1))[:, 1] == 0).all()


def test_squashed_samples_stay_in_the_support() -> None:
    squash = Squash(((-1.0, 0.0), (1.0, 10.0)))
    found = squash(torch.tensor([[-100.0, 100.0], [0.0, 0.0]]))
    torch.testing.assert_close(found, torch.tensor([[-1.0, 10.0], [0.0, 5.0]]))


def test_each_sample_is_joined_to_its_own_context() -> None:
    x, context = torch.randn(3, 4, 2), torch.randn(3, 5)
    joined = with_context(x, context)
    assert joined.shape == (3, 4, 7)
    for i in range(3):
        for j in range(4):
            torch.testing.assert_close(joined[i, j], torch.cat([x[i, j], context[i]]))
    critic = Critic(2, (8,), context_dim=5, scale=0.5)
    torch.testing.assert_close(critic(x, context)[1, 2], critic.layers(torch.cat([2 * x[1, 2], context[1]]))[0])


def test_the_boundary_terms_are_the_log_ratio_of_two_betas() -> None:
    first, second = (
        Beta(torch.tensor(a), torch.tensor(b)) for a, b in (([2.0, 0.7], [3.0, 1.0]), ([4.0, 0.5], [1.0, 6.0]))
    )
    boundary = BoundaryTerms(2, ((-1.0, 0.0), (1.0, 5.0)))
    coefficients = torch.cat(
        [first.concentration1 - second.concentration1, first.concentration0 - second.concentration0]
    )
    with torch.no_grad():
        boundary.coefficients.weight.copy_(coefficients)
    t = torch.rand(20, 2)
    expected = (first.log_prob(t) - second.log_prob(t)).sum(1)
    found = boundary(torch.tensor([-1.0, 0.0]) + torch.tensor([2.0, 5.0]) * t)[:, 0]
    torch.testing.assert_close(found - found[0], expected - expected[0], rtol=1e-4, atol=1e-4)
    assert boundary(torch.tensor([[-1.0, 5.0]])).isfinite().all()


def test_boundary_terms_start_at_zero() -> None:
    critic, x = Critic(2, (8,), support=(-1.0, 1.0)), torch.rand(5, 2)
    torch.testing.assert_close(critic(x), critic.layers(2 * x).squeeze(-1))
    assert any(name.startswith("boundary") for name, _ in critic.named_parameters())


def test_a_log_density_is_called_with_flat_rows_and_their_contexts() -> None:
    x, context = torch.randn(3, 4, 2), torch.randn(3, 2)
    found = evaluate(lambda x, c: (x * c).sum(1), x, context)
    torch.testing.assert_close(found, (x * context[:, None]).sum(-1))


def test_the_average_of_weights_converges_to_them() -> None:
    network = nn.Linear(1, 1, bias=False)
    nn.init.constant_(network.weight, 0.0)
    average = WeightAverage(network, decay=0.9)
    nn.init.constant_(network.weight, 1.0)
    average.update()
    assert float(average.module.get_parameter("weight")) == torch.tensor(0.9)
    for _ in range(200):
        average.update()
    assert abs(float(average.module.get_parameter("weight")) - 1) < 1e-4
    assert not average.module.get_parameter("weight").requires_grad
