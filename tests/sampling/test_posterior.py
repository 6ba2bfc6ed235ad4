"""Evidence bounds against quadrature and closed forms, and both posteriors on data."""

import math
from typing import Literal

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributions import Bernoulli, Normal

from offmap.random_state import local_seed
from offmap.sampling import BinaryVAE
from offmap.sampling.latent_model import LatentModel
from offmap.sampling.networks import smooth_mlp
from offmap.sampling.posterior import GaussianPosterior, RASPosterior

ROWS = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])


def model(latent: int = 1) -> LatentModel:
    with local_seed(0):
        return LatentModel(smooth_mlp([latent, 8, 3]), GaussianPosterior(3, latent, (8,)), latent, particles=4)


def ring(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Rows of 12 with four ones in a row, at a random position on a ring."""
    places = np.random.default_rng(seed).integers(0, 12, size=count)
    return np.isin((np.arange(12)[None] - places[:, None]) % 12, (0, 1, 2, 3)).astype(np.float32)


def test_the_joint_density_is_bernoulli_times_normal() -> None:
    built = model(latent=2)
    latents = torch.randn(2, 5, 2, generator=torch.Generator().manual_seed(0))
    likelihood = Bernoulli(logits=built.decoder(latents)).log_prob(ROWS[:, None].expand(2, 5, 3)).sum(-1)
    prior = Normal(0, 1).log_prob(latents).sum(-1)
    assert torch.allclose(built.log_joint(ROWS, latents), likelihood + prior, atol=1e-5)


def zero_layer(network: nn.Module, first: bool = False) -> None:
    """Sets the last linear layer, or the first, to zero."""
    linear = [layer for layer in network.modules() if isinstance(layer, nn.Linear)][0 if first else -1]
    nn.init.zeros_(linear.weight)
    nn.init.zeros_(linear.bias)


def evidence(built: LatentModel) -> Tensor:
    """By quadrature over the one latent dimension."""
    grid = torch.linspace(-8, 8, 4001)
    joint = built.log_joint(ROWS, grid[None, :, None].expand(2, -1, 1))
    return joint.logsumexp(dim=1) + math.log(16 / 4000)


def test_importance_sampling_finds_the_evidence() -> None:
    built = model()
    with torch.no_grad(), local_seed(0):
        estimate = built.log_evidence(ROWS, draws=50_000)
        assert torch.allclose(estimate, evidence(built), atol=0.01)


def test_the_bound_is_below_the_evidence_and_touches_it_with_the_true_posterior() -> None:
    built = model()
    zero_layer(built.decoder, first=True)
    with torch.no_grad(), local_seed(0):
        # The decoder ignores z, so the posterior is the prior, which an encoder gives whose last layer is zero.
        assert bool((built.elbo(ROWS).mean(1) < evidence(built) + 0.5).all())
        zero_layer(built.posterior)
        assert torch.allclose(built.elbo(ROWS), evidence(built)[:, None].expand(2, 4), atol=1e-4)


class Doubled(nn.Module):
    """A generator's layers that make N(0, 4) of the noise, whatever the row."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(2.0))

    def forward(self, noise_and_row: Tensor) -> Tensor:
        return self.factor * noise_and_row[..., :1]


def test_with_the_true_critic_the_ratio_of_ras_is_exact() -> None:
    """The posterior is its own reference, so the true critic is 0; the joint is the posterior, so the ratio is 0."""
    posterior = RASPosterior(3, 1, (4,), particles=4, noise_dim=1, critic_lr=1e-3, critic_steps=1)
    posterior.generator.layers = nn.Sequential(Doubled())
    zero_layer(posterior.critic)
    with torch.no_grad(), local_seed(0):
        latents = posterior.draw(ROWS, 20_000)
        ratio = posterior.log_ratio(lambda z: Normal(0, 2).log_prob(z).sum(-1), ROWS, latents)
    assert float(latents.std()) == pytest.approx(2, abs=0.05)
    assert float(ratio.abs().mean()) < 0.03


@pytest.mark.parametrize("posterior", ["ras", "gaussian"])
def test_a_model_learns_the_ring(posterior: Literal["ras", "gaussian"]) -> None:
    X = ring(300)
    fitted = BinaryVAE(posterior=posterior, hidden=(32,), epochs=80, batch_size=100, lr=5e-3, random_state=0).fit(X)
    # Twelve rows, equally likely: log 1/12 = −2.48 at the best, and 12 fair coins are −8.3.
    likelihood = fitted.log_likelihood(X[:50], draws=500).mean()
    assert -5 < likelihood < -2.4
    # A bound in closed form, and one by a critic that has seen 480 batches.
    above = {"gaussian": 0.05, "ras": 0.8}[posterior]
    assert likelihood - 1.5 < fitted.elbo(X[:50]).mean() < likelihood + above


def test_a_free_posterior_takes_shapes_that_a_gaussian_cannot() -> None:
    """A posterior with two modes, which the generator finds and a Gaussian cannot."""
    X = np.ones((64, 6), dtype=np.float32)
    fitted = BinaryVAE(latent=1, hidden=(32, 32), particles=16, epochs=1, critic_lr=3e-3, random_state=0).fit(X)
    with local_seed(0):
        step = fitted.model_.training_step(lr=3e-3)
        # Log density of two bumps at ±1.5 in place of the decoder's.
        fitted.model_.log_joint = lambda rows, latents: torch.logaddexp(  # type: ignore[method-assign]
            Normal(-1.5, 0.5).log_prob(latents), Normal(1.5, 0.5).log_prob(latents)
        )[..., 0]
        for _ in range(300):
            step((torch.ones(16, 6),))
    drawn = fitted.sample_posterior(X[:1], count=2000)[0, :, 0]
    assert 0.1 < (drawn > 0).mean() < 0.9
    assert np.abs(drawn).mean() == pytest.approx(1.5, abs=0.25)
    assert (np.abs(drawn) < 0.5).mean() < 0.15


def test_the_same_seed_gives_the_same_model_and_the_callers_random_state_stays() -> None:
    before, X = torch.get_rng_state(), ring(40)
    first, second = (BinaryVAE(hidden=(8,), epochs=2, random_state=3).fit(X) for _ in range(2))
    assert np.array_equal(first.log_likelihood(X, draws=20), second.log_likelihood(X, draws=20))
    assert np.array_equal(first.elbo(X), first.elbo(X))
    assert torch.equal(torch.get_rng_state(), before)


def test_rows_that_are_not_binary_are_refused() -> None:
    with pytest.raises(ValueError, match="X must hold only zeros and ones"):
        BinaryVAE().fit(np.full((4, 2), 0.5))
    with pytest.raises(ValueError, match="posterior must be 'ras' or 'gaussian'"):
        BinaryVAE(posterior="flow").fit(ring(4))  # type: ignore[arg-type]
