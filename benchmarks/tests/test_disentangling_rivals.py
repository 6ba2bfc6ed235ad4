"""The rivals on coloured digits: their losses against densities, and what they promise."""

from typing import Any

import numpy as np
import pytest
import torch

from offmap.dependence.disentangle.groups import split
from offmap_bench.colour_digits import GROUPS, ColourDigits, bundled_digits
from offmap_bench.disentangling_rivals import WIDTH, DIINRival, Rival, VAERival, draw_gaussian

SMALL: dict[str, Any] = {"epochs": 1, "conv_channels": 2}


def small(cls: type[Rival], **settings: Any) -> Rival:
    own = {"flow_epochs": 1} if cls is DIINRival else {}
    return cls(**{**SMALL, **own, **settings})


@pytest.fixture(scope="module")
def few() -> ColourDigits:
    return bundled_digits(count=160)


@pytest.mark.parametrize("cls", [VAERival, DIINRival])
@pytest.mark.parametrize("adversary", [False, True])
def test_the_same_seed_gives_the_same_model_and_the_same_bytes_in_any_batch(
    cls: type[Rival], adversary: bool, few: ColourDigits
) -> None:
    state = torch.get_rng_state()
    first, second = (small(cls, adversary=adversary).fit(few) for _ in "ab")
    assert torch.equal(torch.get_rng_state(), state)
    codes, again, alone = first.encode(few.pixels), second.encode(few.pixels), first.encode(few.pixels[5:6])
    for name, group in GROUPS.items():
        assert codes[name].shape == (160, group.width)
        np.testing.assert_array_equal(codes[name], again[name])
        np.testing.assert_array_equal(codes[name][5:6], alone[name])
    np.testing.assert_array_equal(first.decode(codes)[5:6], first.decode(alone))
    assert ("adversary" in first.history_) == adversary


def test_a_flow_is_undone_on_the_way_to_the_decoder(few: ColourDigits) -> None:
    model = small(DIINRival).fit(few)
    with torch.no_grad():
        latent = model.network_.encoder(few.images)
        torch.testing.assert_close(model._latent(model._codes(latent)), latent, atol=1e-3, rtol=1e-3)


def test_the_loss_of_a_pair_is_that_of_its_gaussians() -> None:
    model = DIINRival(conv_channels=2, rho=0.8)
    model.build()
    a, b = torch.randn(5, WIDTH), torch.randn(5, WIDTH)
    with torch.no_grad():
        found = model.pair_loss(a, b, "colour")
        transform: Any = model.flow_().transform
        (u, stretch), (v, other) = transform.call_and_ladj(a), transform.call_and_ladj(b)
        normal = torch.distributions.Normal(0.0, 1.0)
        own, others = split(u, GROUPS), split(v, GROUPS)
        near = torch.distributions.Normal(0.8 * own["colour"], (1 - 0.8**2) ** 0.5)
        log_prob = normal.log_prob(u).sum(1) + sum(normal.log_prob(others[name]).sum(1) for name in ("digit", "style"))
        log_prob = log_prob + near.log_prob(others["colour"]).sum(1) + stretch + other
        # The normalisers of the densities do not depend on the flow.
        constant = WIDTH * torch.log(torch.tensor(2 * torch.pi)) + 16 * torch.log(torch.tensor(1 - 0.8**2))
        torch.testing.assert_close(found * WIDTH, (-log_prob - constant).mean(), atol=1e-3, rtol=1e-4)


def test_a_divergence_is_that_of_the_posterior_from_the_prior() -> None:
    encoded = torch.randn(6, 8)
    mean, log_var = encoded.chunk(2, dim=1)
    posterior = torch.distributions.Normal(mean, (0.5 * log_var).exp())
    expected = torch.distributions.kl_divergence(posterior, torch.distributions.Normal(0.0, 1.0)).sum(1).mean()
    torch.testing.assert_close(VAERival(beta=3.0)._divergence(encoded)["kl"], 3 * expected)
    torch.manual_seed(0)
    drawn = torch.stack([draw_gaussian(encoded) for _ in range(4000)])
    torch.testing.assert_close(drawn.mean(0), mean, atol=0.2, rtol=0)
    torch.testing.assert_close(drawn.var(0), log_var.exp(), atol=0.3, rtol=0.15)
