"""The terms against the bound, and which network each gradient reaches."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from offmap.density.vae.importance import importance_weights
from offmap.density.vae.network import VAE, Posterior
from offmap.density.vae.objective import Objective
from offmap.random_state import local_seed


def network(likelihood: str = "gaussian", **changes: Any) -> VAE:
    with local_seed(0):
        settings: dict[str, Any] = {"latent_dim": 3, "hidden": (8,), "likelihood": likelihood} | changes
        return VAE((5,) if settings.get("network", "mlp") == "mlp" else (3, 16, 16), **settings)


def rows(count: int = 12) -> Tensor:
    with local_seed(1):
        return torch.rand(count, 5)


def gradients(module: nn.Module) -> list[Tensor | None]:
    return [parameter.grad for parameter in module.parameters()]


def backward(terms: dict[str, Tensor]) -> None:
    sum(terms.values(), start=torch.zeros(())).backward()


def test_elbo_terms_are_the_means_of_the_bound() -> None:
    vae, X = network(), rows()
    with local_seed(2):
        terms = Objective().terms(vae, X)
    with local_seed(2):
        reconstruction, kl = vae.bound(X, torch.randn(12, 3))
    assert_close(terms, {"reconstruction": reconstruction.mean(), "kl": kl.mean()})


def test_negatives_are_sent_to_their_own_prior_and_not_reconstructed() -> None:
    vae, X, negatives = network(), rows(), rows(7) + 3
    with local_seed(2):
        terms = Objective(shift=6.0, weight=0.5).terms(vae, X, negatives)
    with local_seed(2):
        plain = Objective().terms(vae, X)
    assert_close(terms.pop("negatives"), 0.5 * vae.posterior(negatives).kl(6.0).mean())
    assert_close(terms, plain)


def test_negatives_teach_the_encoder_alone() -> None:
    vae = network()
    Objective().terms(vae, rows(), rows(7) + 3)["negatives"].backward()
    assert all(gradient is None for gradient in gradients(vae.decoder))
    assert all(gradient is not None for gradient in gradients(vae.encoder))


def test_forward_kl_is_the_weighted_sum_by_hand() -> None:
    vae, X, objective = network(), rows(2), Objective("forward_kl", n_samples=4)
    with torch.no_grad():
        for parameter in vae.decoder.parameters():  # a posterior far from the encoder's: uneven weights
            parameter.mul_(5)
    with local_seed(2):
        terms = objective.terms(vae, X)
    with local_seed(2):
        noise = torch.randn(4, 2, 3)
    vae.requires_grad_(False)
    posterior = vae.posterior(X)
    totals = {"joint": 0.0, "inference": 0.0}
    for row in range(2):
        latents = [posterior.mean[row] + (posterior.log_var[row] / 2).exp() * noise[k, row] for k in range(4)]
        q = torch.distributions.Normal(posterior.mean[row], (posterior.log_var[row] / 2).exp())
        joint = [
            float(vae.likelihood.log_prob(X[row : row + 1], vae.decoder(z[None]))[0])
            + float(torch.distributions.Normal(0.0, 1.0).log_prob(z).sum())
            for z in latents
        ]
        inference = [float(q.log_prob(z).sum()) for z in latents]
        weights = importance_weights((torch.tensor(joint) - torch.tensor(inference))[:, None])[:, 0].tolist()
        totals["joint"] -= sum(w * j for w, j in zip(weights, joint, strict=True)) / 2
        totals["inference"] -= sum(w * i for w, i in zip(weights, inference, strict=True)) / 2
    for name, total in totals.items():
        assert terms[name].item() == pytest.approx(total, rel=1e-4)


def test_a_draw_of_a_narrow_posterior_keeps_its_distance_from_the_mean() -> None:
    noise = torch.randn(5, 1, 2, dtype=torch.float64)
    for dtype, log_var in ((torch.float64, -1.0), (torch.float32, -60.0)):
        mean = torch.full((1, 2), 30.0, dtype=dtype, requires_grad=True)
        spread = torch.full((1, 2), log_var, dtype=dtype, requires_grad=True)
        found = Posterior(mean, spread).log_prob_of_draw(noise.to(dtype))
        q = torch.distributions.Normal(0.0, np.exp(log_var / 2))
        torch.testing.assert_close(found.double(), q.log_prob(noise * np.exp(log_var / 2)).sum(-1))
        moved = torch.autograd.grad(found.sum(), (mean, spread))
        slopes = (noise / np.exp(log_var / 2)).sum(0), 0.5 * (noise.square() - 1).sum(0)
        for gradient, slope in zip(moved, slopes, strict=True):
            torch.testing.assert_close(gradient.double(), slope, rtol=1e-4, atol=1e-5)


def test_forward_kl_gives_each_network_its_own_term() -> None:
    vae = network()
    terms = Objective("forward_kl").terms(vae, rows())
    terms["joint"].backward(retain_graph=True)
    assert all(gradient is None for gradient in gradients(vae.encoder))
    assert all(gradient is not None for gradient in gradients(vae.decoder))
    vae.zero_grad(set_to_none=True)
    terms["inference"].backward()
    assert all(gradient is None for gradient in gradients(vae.decoder))
    assert all(gradient is not None for gradient in gradients(vae.encoder))


def test_forward_kl_leads_the_encoder_to_the_exact_posterior() -> None:
    """With a decoder that ignores all but one latent dimension, linearly, the posterior is known."""
    vae = VAE((1,), latent_dim=1, hidden=(), likelihood="gaussian")
    encoder, decoder = (
        next(m for m in part.modules() if isinstance(m, nn.Linear)) for part in (vae.encoder, vae.decoder)
    )
    with torch.no_grad():
        decoder.weight.fill_(2.0)
        decoder.bias.fill_(0.0)
    optimizer = torch.optim.Adam(vae.encoder.parameters(), lr=0.02)
    with local_seed(0):
        for _ in range(800):
            X = 5**0.5 * torch.randn(64, 1)
            optimizer.zero_grad()
            Objective("forward_kl", n_samples=16).terms(vae, X)["inference"].backward()
            optimizer.step()
    # z | x ~ N(2x / 5, 1 / 5).
    assert encoder.weight[0].item() == pytest.approx(0.4, abs=0.06)
    assert encoder.bias[1].exp().item() == pytest.approx(0.2, abs=0.06)


def test_encoder_and_decoder_terms_agree_on_real_rows_under_batch_normalisation() -> None:
    vae, X = network(network="dcgan").train(), torch.rand(8, 3, 16, 16)
    with local_seed(3):
        encoder = Objective().encoder_terms(vae, X)
    with local_seed(3):
        decoder = Objective().decoder_terms(vae, X)
    assert_close(decoder["kl"], encoder["kl"].detach())


@pytest.mark.parametrize("changes", [{}, {"network": "dcgan", "spectral_norm": True}])
@pytest.mark.parametrize("kind", ["elbo", "forward_kl"])
def test_adversarial_gradients_reach_the_network_they_should_and_no_other(kind: Any, changes: dict[str, Any]) -> None:
    vae = network(**changes)
    X = rows() if vae.likelihood.shape == (5,) else torch.rand(4, 3, 16, 16)
    terms = Objective(kind).encoder_terms(vae, X)
    terms["negatives"].backward()
    assert all(gradient is None for gradient in gradients(vae.decoder))
    assert all(gradient is not None for gradient in gradients(vae.encoder))
    vae.zero_grad(set_to_none=True)
    backward(Objective(kind).decoder_terms(vae, X))
    assert all(gradient is None for gradient in gradients(vae.encoder))
    assert all(gradient is not None for gradient in gradients(vae.decoder))
    assert all(parameter.requires_grad for parameter in vae.parameters())


def test_the_encoder_pushes_generated_rows_away_and_the_decoder_pulls_them_into_the_prior() -> None:
    vae, X, objective = network(), rows(64), Objective(shift=4.0)

    def generated_kl(shift: float) -> float:
        with torch.no_grad(), local_seed(5):
            return float(vae.posterior(vae.generate(256)).kl(shift).mean())

    for part, terms, shift in (
        (vae.encoder, objective.encoder_terms, 4.0),
        (vae.decoder, objective.decoder_terms, 0.0),
    ):
        before = generated_kl(shift)
        optimizer = torch.optim.Adam(part.parameters(), lr=5e-3)
        with local_seed(6):
            for _ in range(60):
                optimizer.zero_grad()
                backward(terms(vae, X))
                optimizer.step()
        assert generated_kl(shift) < 0.8 * before


@pytest.mark.parametrize("kind", ["elbo", "forward_kl"])
def test_real_rows_do_not_move_what_the_decoder_generates(kind: Any) -> None:
    """Batch normalisation ties the two: without a detach, terms of real rows would reach the generated ones."""
    vae, X = network(network="dcgan").train(), torch.rand(8, 3, 16, 16)
    reached: list[Tensor] = []
    generate = vae.generate

    def watched(count: int) -> Tensor:
        generated = generate(count)
        generated.register_hook(reached.append)
        return generated

    vae.generate = watched  # type: ignore[method-assign]
    terms = Objective(kind).decoder_terms(vae, X)
    generated = terms.pop("generated")
    sum(terms.values(), start=torch.zeros(())).backward(retain_graph=True)
    assert reached == []
    generated.backward()
    assert len(reached) == 1
