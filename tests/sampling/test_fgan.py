"""f-GANs."""

from typing import Any

import numpy as np
import pytest
from scipy import stats
from torch import nn

from offmap.sampling import FGAN
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
