"""Target densities and the measures of sample quality."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import stats

from offmap.sampling import RAS
from offmap_bench import densities
from offmap_bench.densities import Density, bowl, funnel, grid_of_gaussians, mixture, ramp, ring_of_gaussians
from offmap_bench.random_densities import random_box, random_ring
from offmap_bench.sample_quality import cdf_distances, mmd, mode_shares, modes_found, symmetric_kl, weight_error
from offmap_bench.tables.sampling_bounded import DENSITIES as BOUNDED
from offmap_bench.tables.sampling_bounded import MARGIN, target
from offmap_bench.tables.sampling_toys import DENSITIES as TOYS

RING = ring_of_gaussians()


def test_true_samples_get_the_lowest_divergence() -> None:
    assert symmetric_kl(RING.draw(20_480), RING) == pytest.approx(0.68, abs=0.03)


def test_a_standard_deviation_given_as_a_variance_is_detected() -> None:
    """Samples with sd √0.05 in place of 0.05, and a target with the variance 0.05² taken for an sd."""
    wide = mixture(RING.modes, math.sqrt(0.05), -1.0, 1.0, 0.01)  # type: ignore[arg-type]
    narrow = mixture(RING.modes, 0.05**2, -1.0, 1.0, 0.01)  # type: ignore[arg-type]
    assert symmetric_kl(wide.draw(20_480), RING) > 5
    assert symmetric_kl(RING.draw(20_480), wide) > 5
    assert symmetric_kl(RING.draw(20_480), narrow) > 5


def test_samples_outside_the_window_and_missing_modes_cost() -> None:
    samples = RING.draw(20_480)
    floor = symmetric_kl(samples, RING)
    away = samples.clone()
    away[:2000] += 10
    assert symmetric_kl(away, RING) > floor + 0.01
    assert symmetric_kl(samples[samples[:, 0] > 0], RING) > floor + 3


def test_divergence_is_that_of_a_naive_loop() -> None:
    density = Density(lambda x: -x.square().sum(1) / 2, 2, -2.0, 2.0, 1.0)
    samples = np.array([[-1.5, 0.5], [0.5, 0.5], [0.5, 0.5], [1.5, -1.5]])
    p = np.array([[math.exp(-(a * a + b * b) / 2) for b in (-1.5, -0.5, 0.5, 1.5)] for a in (-1.5, -0.5, 0.5, 1.5)])
    q = np.zeros((4, 4))
    q[0, 2], q[2, 2], q[3, 0] = 0.25, 0.5, 0.25
    p, q = (part / part.sum() + 1e-8 for part in (p, q))
    p, q = p / p.sum(), q / q.sum()
    expected = sum(a * math.log(a / b) + b * math.log(b / a) for a, b in zip(p.flat, q.flat, strict=True))
    assert symmetric_kl(samples, density) == pytest.approx(expected, rel=1e-6)


def test_modes_are_counted_by_their_share() -> None:
    assert modes_found(RING.draw(5000), RING) == 8
    assert weight_error(RING.draw(50_000), RING) < 0.02
    one = RING.modes[:1].expand(1000, 2)  # type: ignore[index]
    assert modes_found(one, RING) == 1
    assert weight_error(one, RING) == pytest.approx(7 / 8)
    assert mode_shares(one + 1, RING, within=3).sum() == 0
    with pytest.raises(ValueError, match="no modes"):
        modes_found(one, densities.wave())


def test_discrepancy_is_zero_for_one_source_and_not_for_two() -> None:
    rng = np.random.default_rng(0)
    x, y, z = rng.normal(size=(800, 2)), rng.normal(size=(800, 2)), rng.normal(0.5, 1, size=(800, 2))
    assert abs(mmd(x, y)) < 3e-3
    assert mmd(z, y) > 0.02


@pytest.mark.parametrize(("density", "a", "b"), [(ramp(), 4, 2)])
def test_distances_of_distribution_functions_are_scipys(density: Density, a: float, b: float) -> None:
    samples = 2 * stats.beta.rvs(3, 2, size=2000, random_state=0) - 1
    ks, w1 = cdf_distances(samples, density)
    assert ks == pytest.approx(stats.kstest(samples, stats.beta(a, b, loc=-1, scale=2).cdf).statistic, abs=1e-4)
    true = stats.beta(a, b, loc=-1, scale=2).ppf((np.arange(200_000) + 0.5) / 200_000)
    assert w1 == pytest.approx(stats.wasserstein_distance(samples, true), abs=1e-3)


def test_the_bowl_is_a_sum_of_two_betas() -> None:
    t = np.linspace(0.01, 0.99, 50)
    expected = (1 - t) ** 0.5 * t**5 + (1 - t) ** 5 * t**0.5
    found = bowl().log_u(torch.tensor(2 * t - 1)[:, None]).exp().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def mass_outside(density: Density) -> float:
    """Mass outside the window over the mass inside it, by sums along rays from the centre of the window."""
    rng = torch.Generator().manual_seed(0)
    rays = torch.nn.functional.normalize(torch.randn(64, density.dim, generator=rng, dtype=torch.float64))
    reach = (density.high - density.low) / 2 / rays.abs().max(1, keepdim=True).values
    radii = torch.cat([torch.linspace(0, 1, 2001), torch.logspace(0, 8, 2001)[1:]]).double()
    r = reach * (radii[1:] + radii[:-1]) / 2
    points = (density.low + density.high) / 2 + rays[:, None] * r[..., None]
    values = density.log_u(points.reshape(-1, density.dim)).reshape(r.shape) + (density.dim - 1) * r.log()
    masses = (values - values.max()).exp() * radii.diff()
    return float(masses[:, 2000:].sum() / masses[:, :2000].sum())


# pot2 is only ever sampled with its bounds, and the funnel has heavy tails.
UNBOUNDED = {**BOUNDED, **{title: make() for title, make in TOYS.items() if title not in ("pot2", "funnel-10")}}


@pytest.mark.parametrize("title", UNBOUNDED)
def test_targets_of_samplers_without_bounds_can_be_integrated(title: str) -> None:
    assert mass_outside(UNBOUNDED[title]) < 0.05


def test_a_density_that_keeps_its_value_outside_its_box_cannot() -> None:
    """Samples ran off to where it has infinite mass."""
    flat = Density(lambda x: ramp().log_u(x.clamp(-1, 1)), 1, -1.0, 1.0, 0.001)
    assert mass_outside(flat) > 10


def steepest(density: Density) -> float:
    """The largest slope of the log density in and around its window."""
    x = torch.linspace(density.low - 0.5, density.high + 0.5, 3_000_001, dtype=torch.float64)[:, None].requires_grad_()
    (slope,) = torch.autograd.grad(density.log_u(x).sum(), x)
    return float(slope.abs().max())


@pytest.mark.parametrize("title", BOUNDED)
def test_ras_without_bounds_is_given_a_target_of_limited_slope_and_the_same_mass(title: str) -> None:
    """With slopes of 1e5 next to the bounds a generator all but stopped to learn: a KS of 0.16 instead of 0.01."""
    density = BOUNDED[title]
    given = target(RAS(components=1), density)
    assert steepest(density) > 1e5
    assert steepest(given) < 4 / MARGIN
    assert mass_outside(given) < 0.005
    assert float((given.masses() - density.masses()).abs().sum()) < 5e-4
    assert target(RAS(support=(-1.0, 1.0)), density) is density


@pytest.mark.parametrize("make", [lambda: densities.two_arcs(3.0), densities.wave, densities.rings])
def test_true_samples_from_a_grid_follow_the_density(make: Callable[[], Density]) -> None:
    """The share of a quarter of the window, against a sum over another grid."""
    density = make()
    ticks = torch.linspace(density.low, density.high, 333, dtype=torch.float64)
    points = torch.cartesian_prod(ticks, ticks)
    mass = density.log_u(points).softmax(0)
    expected = float(mass[(points[:, 0] > 1) & (points[:, 1] > 0)].sum())
    drawn = density.draw(50_000)
    assert float(((drawn[:, 0] > 1) & (drawn[:, 1] > 0)).double().mean()) == pytest.approx(expected, abs=0.015)


def test_mixtures_are_those_of_torch() -> None:
    density = grid_of_gaussians(3)
    assert density.modes is not None
    parts = torch.distributions.MultivariateNormal(density.modes, 0.3 * torch.eye(2))
    same = torch.distributions.MixtureSameFamily(torch.distributions.Categorical(torch.ones(9)), parts)
    x = density.draw(100)
    offset = density.log_u(x) - same.log_prob(x)
    assert float(offset.std()) < 1e-4


def test_the_funnels_samples_have_its_moments() -> None:
    samples = funnel().draw(50_000)
    assert float(samples[:, 0].std()) == pytest.approx(3, rel=0.03)
    residual = samples[:, 1] * (-samples[:, 0] / 2).exp()
    assert float(residual.std()) == pytest.approx(1, rel=0.03)
    slope = torch.autograd.functional.jacobian(lambda x: funnel().log_u(x).sum(), torch.zeros(1, 10))
    assert float(slope[0, 0]) == pytest.approx(-4.5)


@pytest.mark.parametrize(("parts", "dim"), [(1, 1), (3, 1), (2, 2)])
def test_random_boxes_are_mixtures_of_scipys_betas(parts: int, dim: int) -> None:
    box = random_box(5, parts, dim)
    x = box.low + box.width * np.random.default_rng(0).uniform(0.05, 0.95, (40, dim))
    betas = stats.beta(box.a, box.b, box.low, box.width).pdf(x[:, None])
    expected = np.log(betas.prod(-1) @ box.weights)
    offset = box.log_u(torch.tensor(x)).numpy() - expected
    np.testing.assert_allclose(offset, offset[0], atol=1e-6)


def test_the_distance_to_a_random_box_is_small_for_its_own_samples_only() -> None:
    box, rng = random_box(5, 2, 2), np.random.default_rng(0)
    rows = rng.choice(2, size=20_000, p=box.weights)
    true = box.low + box.width * rng.beta(box.a[rows], box.b[rows])
    assert box.ks(true) < 0.015
    assert box.ks(box.low + box.width * rng.uniform(size=(20_000, 2))) > 0.1


def test_unequal_modes_are_counted_by_their_weights() -> None:
    ring = random_ring(0)
    assert ring.weights is not None
    assert ring.modes is not None
    assert float(ring.weights.max() / ring.weights.min()) > 1.5
    drawn = ring.draw(50_000)
    assert modes_found(drawn, ring) == 6
    assert weight_error(drawn, ring) < 0.01
    assert weight_error(drawn[:, [1, 0]], ring) > 0.05
    parts = torch.distributions.MultivariateNormal(ring.modes, 0.09 * torch.eye(2))
    same = torch.distributions.MixtureSameFamily(torch.distributions.Categorical(ring.weights), parts)
    assert float((ring.log_u(drawn[:100]) - same.log_prob(drawn[:100])).std()) < 1e-4
