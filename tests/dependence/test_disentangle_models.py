"""The disentangling models: what they learn on bundled digits, and what they promise."""

from typing import Any

import pytest
import torch
from torch import nn

from offmap.dependence.disentangle import (
    AEDisentangler,
    Codes,
    ColourDigits,
    DIINDisentangler,
    Disentangler,
    TCDisentangler,
    VAEDisentangler,
    bundled_digits,
)
from offmap.dependence.disentangle.adversary import Adversary, Opponent
from offmap.dependence.disentangle.networks import encoder

SMALL: dict[str, Any] = {"epochs": 1, "channels": 2, "random_state": 0}
MODELS = (AEDisentangler, VAEDisentangler, DIINDisentangler, TCDisentangler)


def small(cls: type[Disentangler], **settings: Any) -> Disentangler:
    own = {"flow_epochs": 1} if cls is DIINDisentangler else {}
    return cls(**{**SMALL, **own, **settings})


@pytest.fixture(scope="module")
def few() -> ColourDigits:
    return bundled_digits(count=160)


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("adversary", [False, True])
def test_the_same_seed_gives_the_same_model_and_leaves_the_random_state(
    cls: type[Disentangler], adversary: bool, few: ColourDigits
) -> None:
    state = torch.get_rng_state()
    first, second = (small(cls, adversary=adversary).fit(few) for _ in "ab")
    assert torch.equal(torch.get_rng_state(), state)
    codes, again = (model.encode(few.images) for model in (first, second))
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(codes, again, strict=True))
    assert ("adversary" in first.history_) == adversary
    assert [code.shape[1] for code in codes] == [32, 32, 64]


@pytest.mark.parametrize("cls", MODELS)
def test_an_image_gets_the_same_bytes_whatever_its_batch(cls: type[Disentangler], few: ColourDigits) -> None:
    model = small(cls).fit(few)
    whole, alone = model.encode(few.images), model.encode(few.images[5:6])
    assert all(torch.equal(code[5:6], own) for code, own in zip(whole, alone, strict=True))
    assert torch.equal(model.decode(whole)[5:6], model.decode(alone))


def test_a_flow_is_undone_on_the_way_to_the_decoder(few: ColourDigits) -> None:
    model = small(DIINDisentangler).fit(few)
    with torch.no_grad():
        latent = model.network_["encoder"](few.images)
        torch.testing.assert_close(model._latent(model._codes(latent).joined()), latent, atol=1e-3, rtol=1e-3)


def test_the_loss_of_a_pair_is_that_of_its_gaussians() -> None:
    model = DIINDisentangler(digit_width=2, colour_width=2, style_width=3, channels=2, rho=0.8)
    model._build()
    a, b = torch.randn(5, 7), torch.randn(5, 7)
    with torch.no_grad():
        found = model._pair(a, b, shared=1)
        transform: Any = model.flow_().transform
        (u, stretch), (v, other) = transform.call_and_ladj(a), transform.call_and_ladj(b)
        normal = torch.distributions.Normal(0.0, 1.0)
        near = torch.distributions.Normal(0.8 * u[:, 2:4], (1 - 0.8**2) ** 0.5)
        log_prob = normal.log_prob(u).sum(1) + normal.log_prob(v[:, [0, 1, 4, 5, 6]]).sum(1)
        log_prob = log_prob + near.log_prob(v[:, 2:4]).sum(1) + stretch + other
        # The normalisers of the densities do not depend on the flow.
        constant = 7 * torch.log(torch.tensor(2 * torch.pi)) + torch.log(torch.tensor(1 - 0.8**2))
        torch.testing.assert_close(found * 7, (-log_prob - constant).mean(), atol=1e-4, rtol=1e-4)


def test_a_divergence_is_that_of_the_posterior_from_the_prior() -> None:
    model = VAEDisentangler(digit_width=1, colour_width=1, style_width=2, beta=1.0)
    encoded = torch.randn(6, 8)
    mean, log_var = encoded.chunk(2, dim=1)
    posterior = torch.distributions.Normal(mean, (0.5 * log_var).exp())
    expected = torch.distributions.kl_divergence(posterior, torch.distributions.Normal(0.0, 1.0)).sum(1).mean()
    torch.testing.assert_close(model._penalties(encoded, model._drawn(encoded))["kl"], expected)


def test_the_style_says_less_of_the_digit_under_the_penalty() -> None:
    digits = bundled_digits("train", count=500)
    settings: dict[str, Any] = {"epochs": 6, "channels": 4, "batch_size": 32, "estimator": "js", "random_state": 0}
    free, held = (TCDisentangler(gamma=gamma, **settings).fit(digits) for gamma in (0.0, 20.0))
    assert _shared(held, digits) < _shared(free, digits) - 0.15


def test_the_penalty_moves_the_style_and_leaves_the_taught_codes() -> None:
    model = TCDisentangler(digit_width=2, colour_width=2, style_width=3, channels=2)
    model._build()
    encoded = torch.randn(16, 7, requires_grad=True)
    model._penalties(encoded, model._drawn(encoded))["total_correlation"].backward()
    assert encoded.grad is not None
    assert (encoded.grad[:, :4] == 0).all()
    assert (encoded.grad[:, 4:] != 0).any()


def test_codes_are_standardised_and_taught_by_their_labels_alone() -> None:
    digits = bundled_digits("train", count=200)
    model = AEDisentangler(epochs=8, channels=4, batch_size=20, random_state=0).fit(digits)
    joined = model.encode(digits.images).joined()
    assert joined.mean().abs() < 0.1
    assert 0.7 < joined.std(0).mean() < 1.3
    encoded = torch.randn(16, 128, requires_grad=True)
    batch = (digits.images[:16], digits.digits[:16], digits.colours[:16], encoded, *model._drawn(encoded))
    model._objective(batch, None)["reconstruction"].backward()
    assert encoded.grad is not None
    assert (encoded.grad[:, :64] == 0).all()
    assert (encoded.grad[:, 64:] != 0).any()


def _shared(model: Disentangler, data: ColourDigits) -> float:
    """How well the noisy style tells the digit: the share of nearest neighbours of one digit, above chance."""
    style = model.encode(data.images).style
    style = style + model.noise * torch.randn(style.shape, generator=torch.Generator().manual_seed(0))
    distances = torch.cdist(style, style).fill_diagonal_(torch.inf)
    return float((data.digits[distances.argmin(1)] == data.digits).float().mean()) - 0.1


def test_an_encoder_that_normalises_each_image_could_not_see_brightness() -> None:
    bright = bundled_digits(count=4).images
    layers = list(encoder(8, channels=2, standardised=True).eval())[:3]
    ours, instances = nn.Sequential(*layers), nn.Sequential(*map(_instance, layers))
    with torch.no_grad():
        torch.testing.assert_close(ours(bright / 2), ours(bright) / 2)
        torch.testing.assert_close(instances(bright / 2), instances(bright), atol=0.1, rtol=0.05)


def _instance(layer: nn.Module) -> nn.Module:
    return nn.InstanceNorm2d(layer.num_features) if isinstance(layer, nn.BatchNorm2d) else layer


def test_an_adversary_learns_to_tell_noise_from_digits_under_a_bounded_norm(few: ColourDigits) -> None:
    torch.manual_seed(0)
    opponent = Opponent(4, 4e-3, "cpu")
    losses = []
    for _ in range(25):
        opponent.sees_through(torch.rand_like(few.images) - 0.5)
        losses.append(float(opponent.learn(few.images)["adversary"]))
    assert losses[-1] < losses[0] / 2
    for layer in Adversary(4).layers:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            assert torch.linalg.matrix_norm(layer.weight.flatten(1), ord=2) < 1.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs must be an integer at least 1; got 0"),
        ({"reconstruction": -1.0}, "reconstruction must be a number above 0; got -1.0"),
        ({"estimator": "guess"}, "estimator must be among"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str, few: ColourDigits) -> None:
    with pytest.raises(ValueError, match=message):
        TCDisentangler(**{**SMALL, **settings}).fit(few)


def test_images_of_another_shape_and_no_images_are_refused(few: ColourDigits) -> None:
    model = small(AEDisentangler).fit(few)
    for images in (torch.zeros(2, 1, 32, 32), torch.zeros(0, 3, 32, 32)):
        with pytest.raises(ValueError, match=r"images must be \(n, 3, 32, 32\), n at least 1"):
            model.encode(images)
    with pytest.raises(ValueError, match=r"codes must have the widths \(32, 32, 64\)"):
        model.decode(Codes(torch.zeros(2, 3), torch.zeros(2, 32), torch.zeros(2, 64)))
    with pytest.raises(ValueError, match="data must hold at least 2 images; got 1"):
        small(AEDisentangler).fit(few.some(torch.arange(1)))
