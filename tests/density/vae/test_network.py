"""The bound against closed forms."""

from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor, nn
from torch.distributions import MultivariateNormal, Normal, kl_divergence
from torch.testing import assert_close

from offmap.density.vae.network import VAE, Posterior
from offmap.random_state import local_seed


def pairs(width: float, dtype: Any = np.float64) -> Any:
    shapes = st.tuples(st.integers(1, 5), st.integers(1, 4))
    elements = st.floats(-width, width, width=32)
    arrays = shapes.flatmap(lambda shape: st.tuples(*[hnp.arrays(dtype, shape, elements=elements)] * 2))
    return arrays.map(lambda pair: Posterior(*map(torch.from_numpy, pair)))


@settings(deadline=None)
@given(pairs(10))
def test_divergence_is_that_of_torch(posterior: Posterior) -> None:
    q = Normal(posterior.mean, (posterior.log_var / 2).exp())
    expected = kl_divergence(q, Normal(0.0, 1.0)).sum(1)
    assert_close(posterior.kl(), expected, rtol=1e-6, atol=1e-9)


@settings(deadline=None, max_examples=300)
@given(st.one_of(pairs(10, np.float32), pairs(2**-10, np.float32)))
def test_divergence_is_never_below_0_in_single_precision(posterior: Posterior) -> None:
    assert (posterior.kl() >= 0).all()


def test_divergence_keeps_its_digits_near_the_prior() -> None:
    log_var = torch.linspace(-1e-2, 1e-2, 10_001)[:, None]
    found = Posterior(torch.zeros_like(log_var), log_var).kl()
    assert (found >= 0).all()
    far = log_var[:, 0].abs() > 1e-3
    # Half the square of the logarithm, but for terms of the third order.
    assert_close(found[far], log_var[far, 0] ** 2 / 4, rtol=1e-2, atol=0)


@settings(deadline=None)
@given(pairs(3))
def test_latent_vectors_are_shifted_and_scaled_noise(posterior: Posterior) -> None:
    noise = torch.linspace(-2, 2, posterior.mean.numel(), dtype=torch.float64).reshape(posterior.mean.shape)
    assert_close(posterior.at(noise), posterior.mean + torch.sqrt(posterior.log_var.exp()) * noise)


class LinearGaussian:
    """p(x | z) = N(Wz + b, I) with orthogonal columns of W: the posterior is diagonal, and all is known exactly."""

    def __init__(self, width: int = 5, latent: int = 3) -> None:
        with local_seed(0):
            orthogonal, _ = torch.linalg.qr(torch.randn(width, latent, dtype=torch.float64))
            self.stretch = torch.linspace(0.5, 2, latent, dtype=torch.float64)
            self.W, self.b = orthogonal * self.stretch, torch.randn(width, dtype=torch.float64)
            self.X = 3 * torch.randn(20, width, dtype=torch.float64)
            self.vae = VAE((width,), latent_dim=latent, hidden=(), likelihood="gaussian").double()
        self.latent = latent
        encoder, decoder = (linear(part) for part in (self.vae.encoder, self.vae.decoder))
        variance = 1 / (1 + self.stretch**2)
        to_mean = variance[:, None] * self.W.T
        with torch.no_grad():
            decoder.weight.copy_(self.W)
            decoder.bias.copy_(self.b)
            encoder.weight.copy_(torch.cat([to_mean, torch.zeros_like(to_mean)]))
            encoder.bias.copy_(torch.cat([-to_mean @ self.b, variance.log()]))

    def evidence(self) -> Tensor:
        covariance = self.W @ self.W.T + torch.eye(len(self.b), dtype=torch.float64)
        return MultivariateNormal(self.b, covariance).log_prob(self.X)

    def bound(self) -> Tensor:
        """The ELBO, its expectation taken over points with the mean and covariance of the noise: exact for squares."""
        points = self.latent**0.5 * torch.eye(self.latent, dtype=torch.float64)
        with torch.no_grad():
            sums = [sum(self.vae.bound(self.X, point)) for point in torch.cat([points, -points])]
        return -torch.stack([torch.as_tensor(each) for each in sums]).mean(0)


def linear(part: nn.Module) -> nn.Linear:
    (layer,) = (each for each in part.modules() if isinstance(each, nn.Linear))
    return layer


def test_the_bound_is_the_evidence_at_the_exact_posterior() -> None:
    model = LinearGaussian()
    assert_close(model.bound(), model.evidence())


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([0.01, 0.1, 1.0]))
def test_the_bound_lies_below_the_evidence_at_any_other_posterior(seed: int, size: float) -> None:
    model = LinearGaussian()
    with torch.no_grad(), local_seed(seed):
        for parameter in linear(model.vae.encoder).parameters():
            parameter.add_(size * torch.randn_like(parameter))
    assert (model.bound() < model.evidence()).all()


def test_one_draw_serves_all_rows_and_is_saved_with_the_network() -> None:
    vae = VAE((4,), latent_dim=3, hidden=(5,), likelihood="gaussian")
    assert vae.draw.shape == (3,)
    assert "draw" in vae.state_dict()
    assert not vae.draw.requires_grad
    X = torch.randn(6, 4)
    reconstruction, kl = vae.bound(X, vae.draw)
    alone = vae.bound(X[2:3], vae.draw)
    assert_close(torch.stack([reconstruction[2], kl[2]]), torch.stack(alone)[:, 0])


def test_perceptrons_take_images_and_give_them_back() -> None:
    vae = VAE((2, 3, 4), latent_dim=2, hidden=(5,), likelihood="bernoulli")
    X = torch.rand(6, 2, 3, 4)
    assert vae.decoder(vae.posterior(X).mean).shape == X.shape


@settings(deadline=None)
@given(pairs(10), st.floats(-30, 30))
def test_divergence_from_the_prior_of_negatives_is_that_of_torch(posterior: Posterior, shift: float) -> None:
    q = Normal(posterior.mean, (posterior.log_var / 2).exp())
    expected = kl_divergence(q, Normal(shift, 1.0)).sum(1)
    assert_close(posterior.kl(shift), expected, rtol=1e-6, atol=1e-9)


@settings(deadline=None)
@given(pairs(5))
def test_density_of_latent_vectors_is_that_of_torch(posterior: Posterior) -> None:
    noise = torch.linspace(-3, 3, 2 * posterior.mean.numel(), dtype=torch.float64).reshape(2, *posterior.mean.shape)
    latents = posterior.at(noise)
    expected = Normal(posterior.mean, (posterior.log_var / 2).exp()).log_prob(latents).sum(-1)
    assert_close(posterior.log_prob_of_draw(noise), expected)


def draws(count: int, latent: int) -> Tensor:
    with local_seed(1):
        return torch.randn(count, 1, latent, dtype=torch.float64)


def test_every_importance_weight_is_the_evidence_at_the_exact_posterior() -> None:
    model = LinearGaussian()
    with torch.no_grad():
        weights = model.vae.log_weights(model.X, draws(7, model.latent))
    assert_close(weights, model.evidence().expand(7, -1))


def test_more_draws_bring_the_importance_weighted_bound_to_the_evidence() -> None:
    model = LinearGaussian()
    with torch.no_grad(), local_seed(3):
        for parameter in linear(model.vae.encoder).parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        weights = model.vae.log_weights(model.X, draws(20_000, model.latent))

    def gap(count: int) -> float:
        """How far the bound with so many draws a row lies below the evidence, on average."""
        bounds = weights.unflatten(0, (-1, count)).logsumexp(1) - np.log(count)
        return float((model.evidence() - bounds.mean(0)).mean())

    assert gap(1) > 2 * gap(5) > 4 * gap(50) > 0
    assert gap(20_000) < 0.05 * gap(1)


def test_generated_rows_are_expected_rows_of_the_prior() -> None:
    vae = VAE((4,), latent_dim=3, hidden=(5,), likelihood="bernoulli")
    with local_seed(0):
        generated = vae.generate(6)
    with local_seed(0):
        expected = vae.decoder(torch.randn(6, 3)).sigmoid()
    assert_close(generated, expected)


def test_reconstruction_is_the_expected_row_at_the_mean() -> None:
    vae = VAE((1, 16, 16), latent_dim=3, hidden=(), likelihood="bernoulli", network="conv")
    X = torch.rand(5, 1, 16, 16)
    expected, posterior = vae.reconstruct(X)
    assert_close(expected, vae.decoder(posterior.mean).sigmoid())
    assert_close(posterior.mean, vae.posterior(X).mean)
