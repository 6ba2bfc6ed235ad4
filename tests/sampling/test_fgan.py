"""f-GANs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import offmap
from offmap.sampling import FGAN
from offmap.sampling.data_units import column_units
from offmap.sampling.divergences import OBJECTIVES

SMALL: dict[str, Any] = {"hidden": (32, 32), "steps": 400, "batch_size": 128, "lr": 2e-3, "random_state": 0}
GIVEN = np.random.default_rng(0).normal([2.0], [0.5], size=(4000, 1))


@pytest.mark.parametrize("divergence", OBJECTIVES)
def test_every_divergence_learns_a_gaussian(divergence: Any) -> None:
    gan = FGAN(dim=1, divergence=divergence, cycle_weight=0.01, critic_steps=2, critic_lr=3e-3, **SMALL).fit(GIVEN)
    samples = gan.sample(10_000, random_state=0)
    assert samples.mean() == pytest.approx(2.0, abs=0.4)
    # The untrained generator has a distance of 0.9.
    assert stats.kstest(samples[:, 0], stats.norm(2, 0.5).cdf).statistic < 0.4


def test_the_cycle_term_spreads_the_samples() -> None:
    spreads = [
        FGAN(dim=1, cycle_weight=weight, **SMALL).fit(GIVEN).sample(10_000, random_state=0).std()
        for weight in (0.0, 5.0)
    ]
    assert spreads[1] > 1.2 * spreads[0]


def test_a_spectral_critic_has_layers_of_norm_one() -> None:
    gan = FGAN(dim=1, spectral=True, **SMALL | {"steps": 60}).fit(GIVEN)
    for layer in gan.critic_.layers:
        if not isinstance(layer, nn.Linear):
            continue
        assert float(np.linalg.norm(layer.weight.detach().numpy(), 2)) == pytest.approx(1.0, abs=0.05)


def test_samples_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match=r"X must be \(n, 2\)"):
        FGAN(dim=2, **SMALL).fit(GIVEN)
    with pytest.raises(ValueError, match="NaN"):
        FGAN(dim=1, **SMALL).fit(np.full((5, 1), np.nan))


@pytest.mark.parametrize(("mean", "sd"), [(1000.0, 1.0), (-50.0, 0.5), (0.0, 300.0), (0.0, 1e-3)])
def test_columns_of_any_place_and_size_are_learnt(mean: float, sd: float) -> None:
    X = np.random.default_rng(0).normal(mean, sd, size=(1000, 1))
    samples = FGAN(dim=1, cycle_weight=0.05, critic_lr=3e-3, **SMALL).fit(X).sample(5000, random_state=0).astype(float)
    assert abs(samples.mean() - mean) < 0.6 * sd
    assert 0.4 * sd < samples.std() < 1.8 * sd


def test_a_column_far_away_is_learnt_as_it_would_be_at_the_origin() -> None:
    """Means and standard deviations that single precision holds exactly, so that the units cancel."""
    X = np.array([[-1.0], [1.0]]).repeat(32, axis=0)
    near, far = (FGAN(dim=1, **SMALL | {"steps": 20}).fit(512 * factor + factor * X) for factor in (1.0, 64.0))
    np.testing.assert_allclose(
        near.sample(50, random_state=0) - 512, far.sample(50, random_state=0) / 64 - 512, atol=1e-3
    )


def test_a_fit_to_columns_in_their_own_units_is_saved(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal([1000.0, 0.0], [1.0, 1.0], size=(100, 2))
    gan = FGAN(dim=2, **SMALL | {"steps": 3}).fit(X)
    gan.save(tmp_path / "gan.safetensors")
    loaded = offmap.load(tmp_path / "gan.safetensors")
    drawn, again = (model.sample(20, random_state=0) for model in (gan, loaded))
    assert np.array_equal(drawn, again)
    assert np.abs(drawn[:, 0] - 1000).max() < 20
    points = torch.from_numpy(drawn)
    assert torch.equal(gan.critic_(points), loaded.critic_(points))


@pytest.mark.parametrize(
    ("mean", "sd", "scale", "own"),
    [
        (4.5, 0.5, 1.0, False),
        (5.5, 0.5, 1.0, True),
        (40.0, 9.0, 1.0, False),
        (0.0, 11.0, 1.0, True),
        (0.0, 0.11, 1.0, False),
        (0.0, 0.09, 1.0, True),
        (0.0, 50.0, 50.0, False),
        (3.0, 0.0, 1.0, False),
        (30.0, 0.0, 1.0, True),
    ],
)
def test_only_columns_far_from_the_origin_or_of_another_size_get_units(
    mean: float, sd: float, scale: float, own: bool
) -> None:
    X = torch.tensor([[mean - sd, 0.0], [mean + sd, scale]])
    offset, unit = column_units(X, scale)
    expected = (mean, (sd or scale) / scale) if own else (0.0, 1.0)
    assert (float(offset[0]), float(unit[0])) == pytest.approx(expected, rel=1e-5)
    assert (float(offset[1]), float(unit[1])) == (0.0, 1.0)
