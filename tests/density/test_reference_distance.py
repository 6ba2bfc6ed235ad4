"""Ranks, decorrelation and neighbours against SciPy, plain loops and closed forms."""

from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from offmap.density.reference_distance import LocalDistanceRatio, Mahalanobis, NormalScores, Whitening


def sample(count: int, width: int = 3, seed: int = 0) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, width)) @ rng.normal(size=(width, width))


@settings(deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=30))
def test_reference_values_get_the_normal_scores_of_their_ranks(values: list[int]) -> None:
    reference = np.array(values, dtype=float)[:, None]
    found = NormalScores.fit(reference)(torch.from_numpy(reference))[:, 0]
    expected = norm.ppf(rankdata(values) / (len(values) + 1))
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-9)


@settings(deadline=None)
@given(st.integers(0, 1000))
def test_normal_scores_rise_with_the_statistic_and_go_on_outside(seed: int) -> None:
    reference = np.random.default_rng(seed).lognormal(size=(50, 1))
    grid = torch.linspace(-100, 100, 4001, dtype=torch.float64)[:, None]
    scores = NormalScores.fit(reference)(grid)[:, 0]
    assert (scores.diff() >= 0).all()
    outside = (grid[:, 0] > reference.max()) | (grid[:, 0] < reference.min())
    both_outside = outside[1:] & outside[:-1]
    assert (scores.diff()[both_outside] > 0).all()


def test_normal_scores_do_not_depend_on_a_scale_that_keeps_the_order() -> None:
    reference, rows = sample(200), sample(50, seed=1)
    inside = ((rows > reference.min(0)) & (rows < reference.max(0))).all(1)
    plain = NormalScores.fit(reference)(torch.from_numpy(rows[inside]))
    skewed = NormalScores.fit(np.exp(reference))(torch.from_numpy(np.exp(rows[inside])))
    torch.testing.assert_close(plain, skewed)


def test_a_constant_statistic_tells_only_what_differs_from_it() -> None:
    scores = NormalScores.fit(np.full((40, 1), 2.0))(torch.tensor([[2.0], [2.1], [1.9]], dtype=torch.float64))
    assert abs(float(scores[0, 0])) < 1e-9
    assert float(scores[1, 0]) > 100
    assert float(scores[2, 0]) < -100


def test_whitened_rows_have_no_mean_unit_variance_and_no_correlation() -> None:
    rows = torch.from_numpy(sample(5000))
    white = Whitening.fit(rows)(rows)
    torch.testing.assert_close(white.mean(0), torch.zeros(3, dtype=torch.float64), atol=1e-9, rtol=0)
    torch.testing.assert_close(white.T.cov(), torch.eye(3, dtype=torch.float64), atol=0.05, rtol=0)


def test_whitening_stands_fewer_rows_than_statistics() -> None:
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(10, 30)))
    others = torch.from_numpy(np.random.default_rng(1).normal(size=(10, 30)))
    white = Whitening.fit(rows)(others)
    assert white.isfinite().all()
    # Without shrinkage the directions that ten rows do not span would weigh without bound.
    assert white.abs().max() < 20


def test_mahalanobis_is_chi_squared_for_normal_rows_and_two_sided() -> None:
    reference, rows = sample(4000), sample(4001, seed=0)[-1:]
    measure = Mahalanobis.fit(reference)
    assert abs(float(measure(torch.from_numpy(reference)).mean()) - 3) < 0.1
    centre = reference.mean(0)
    for side in (-6, 6):
        assert measure(torch.from_numpy(centre + side * reference.std(0))[None]) > 30
    assert measure(torch.from_numpy(rows)) < 30


def naive_ratios(rows: np.ndarray[Any, Any], reference: np.ndarray[Any, Any], skip_self: bool) -> list[float]:
    """The logarithm of a row's mean distance to its ten nearest over that of those ten, one row after another."""

    def radius(row: np.ndarray[Any, Any], others: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
        distances = np.linalg.norm(others - row, axis=1)
        nearest = np.argsort(distances)[:10]
        return float(distances[nearest].mean()), nearest

    own = [radius(row, np.delete(reference, place, axis=0))[0] for place, row in enumerate(reference)]
    found = []
    for place, row in enumerate(rows):
        kept = np.delete(np.arange(len(reference)), place) if skip_self else np.arange(len(reference))
        distance, nearest = radius(row, reference[kept])
        found.append(float(np.log(distance / np.mean([own[n] for n in kept[nearest]]))))
    return found


def test_local_ratios_are_those_of_a_loop() -> None:
    scores, rows = torch.from_numpy(sample(60)), torch.from_numpy(sample(15, seed=3))
    measure = LocalDistanceRatio.fit(scores)
    reference = measure.whiten(scores).numpy()
    own = np.sort(naive_ratios(reference, reference, skip_self=True))
    np.testing.assert_allclose(measure.ranks.values[0].numpy(), own, atol=1e-4)
    ratios = torch.tensor(naive_ratios(measure.whiten(rows).numpy(), reference, skip_self=False), dtype=torch.float64)
    expected = measure.ranks(ratios[:, None])[:, 0]
    np.testing.assert_allclose(measure(rows).numpy(), expected.numpy(), atol=0.05)


def test_local_ratios_see_the_hole_of_a_ring_that_a_centre_does_not() -> None:
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 2 * np.pi, size=600), rng.normal(5, 0.2, size=600)
    reference = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    hole, typical = torch.zeros(1, 2, dtype=torch.float64), torch.from_numpy(reference[:100])
    ratio, centre = LocalDistanceRatio.fit(torch.from_numpy(reference)), Mahalanobis.fit(reference)
    assert ratio(hole) > ratio(typical).quantile(0.98)
    assert centre(hole) < centre(typical).min()


def test_local_ratios_see_a_row_close_to_rows_that_are_closer_yet() -> None:
    """A dense kind and a wide one: the same distance is nothing beside the wide kind, and much beside the dense one."""
    rng = np.random.default_rng(0)
    reference = np.concatenate([rng.normal(0, 1, size=(300, 2)), rng.normal(12, 0.05, size=(300, 2))])
    measure = LocalDistanceRatio.fit(torch.from_numpy(reference))
    beside_dense, beside_wide = torch.tensor([[12.5, 12.5], [0.5, 0.5]], dtype=torch.float64).split(1)
    assert measure(beside_dense) > 2.5
    assert measure(beside_wide) < 1.5


def test_a_reference_row_is_compared_with_the_others_if_asked() -> None:
    scores = torch.from_numpy(sample(60))
    skipping, plain = (LocalDistanceRatio.fit(scores, skip_self=skip) for skip in (True, False))
    ratios = torch.tensor(naive_ratios(*(skipping.whiten(scores).numpy(),) * 2, skip_self=True), dtype=torch.float64)
    # Rounding moves a value by half a rank from the one that it equals.
    np.testing.assert_allclose(skipping(scores), skipping.ranks(ratios[:, None])[:, 0], atol=0.3)
    assert (plain(scores) < skipping(scores)).all()
    others = torch.from_numpy(sample(15, seed=3))
    torch.testing.assert_close(plain(others), skipping(others))
