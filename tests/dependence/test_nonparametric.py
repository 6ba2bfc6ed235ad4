"""The nonparametric estimators, against brute force, other libraries and closed forms."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import digamma, gamma
from sklearn.cross_decomposition import CCA
from sklearn.neighbors import KernelDensity

from offmap.dependence import gaussian, gaussian_copula, kde, ksg, ksg_improved, mixed_ksg
from offmap.dependence.covariance import gaussian_pointwise, log_determinant_bias, normal_scores
from offmap.dependence.kernel import log_density
from offmap.dependence.nearest_neighbors import WIDEST_TREE, ksg_improved_pointwise, ksg_pointwise

Array = NDArray[np.float64]


def correlated(rows: int, width: int, correlation: float, seed: int = 0) -> tuple[Array, Array]:
    x, noise = np.random.default_rng(seed).normal(size=(2, rows, width))
    return x, correlation * x + math.sqrt(1 - correlation**2) * noise


def brute_ksg(variables: list[Array], k: int) -> float:
    """The published formula, row by row."""
    rows = len(variables[0])
    total = 0.0
    for i in range(rows):
        apart = [np.abs(variable - variable[i]).max(1) for variable in variables]
        radius = np.sort(np.delete(np.max(apart, axis=0), i))[k - 1]
        counts = [int((np.delete(distance, i) < radius).sum()) for distance in apart]
        total += digamma(k) + (len(variables) - 1) * digamma(rows) - sum(digamma(count + 1) for count in counts)
    return float(total / rows)


def brute_improved(variables: list[Array], k: int, order: float) -> float:
    rows = len(variables[0])
    widths = [variable.shape[1] for variable in variables]

    def ball(width: int) -> float:
        return float(math.pi ** (width / 2) / gamma(width / 2 + 1)) if order == 2 else 2.0**width

    constant = math.log(math.prod(map(ball, widths)) / ball(sum(widths)))
    total = 0.0
    for i in range(rows):
        apart = [np.linalg.norm(variable - variable[i], ord=order, axis=1) for variable in variables]
        radius = np.sort(np.delete(np.linalg.norm(apart, ord=order, axis=0), i))[k - 1]
        counts = [int((np.delete(distance, i) <= radius * (1 + 1e-12)).sum()) for distance in apart]
        total += digamma(k) + (len(variables) - 1) * math.log(rows) + constant - sum(map(math.log, counts))
    return total / rows


# Lines, trees, and all distances.
SHAPES = [(1, 1), (1, 3), (2, 2), (WIDEST_TREE + 1, 2), (6, 7), (1, 2, 1), (1, 6, 2)]


@pytest.mark.parametrize("widths", SHAPES)
@pytest.mark.parametrize("k", [1, 3, 7])
def test_ksg_is_the_published_formula(widths: tuple[int, ...], k: int) -> None:
    rng = np.random.default_rng(sum(widths))
    common = rng.normal(size=(120, 1))
    variables = [common + rng.normal(size=(120, width)) for width in widths]
    assert ksg_pointwise(variables, n_neighbors=k).mean() == pytest.approx(brute_ksg(variables, k), abs=1e-9)
    for norm, order in (("maximum", math.inf), ("euclidean", 2)):
        found = ksg_improved_pointwise(variables, n_neighbors=k, norm=norm).mean()
        assert found == pytest.approx(brute_improved(variables, k, order), abs=1e-9)


@pytest.mark.parametrize("estimate", [ksg, ksg_improved, mixed_ksg])
def test_neighbours_find_what_gaussians_share_in_few_columns(estimate: type) -> None:
    assert estimate(*correlated(4000, 1, 0.9)) == pytest.approx(-0.5 * math.log(1 - 0.81), abs=0.06)
    assert estimate(*correlated(4000, 2, 0.0)) == pytest.approx(0, abs=0.06)


def test_the_order_of_the_rows_does_not_matter_to_neighbours() -> None:
    x, y = correlated(300, 2, 0.7)
    order = np.random.default_rng(1).permutation(300)
    assert ksg(x, y) == pytest.approx(ksg(x[order], y[order]), abs=1e-12)
    assert ksg(x, y) == pytest.approx(ksg(y, x), abs=1e-12)
    assert ksg(3 * x + 1, 3 * y) == pytest.approx(ksg(x, y), abs=1e-9)


def test_kernel_densities_leave_each_row_out() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 5.0]
    bandwidth = rows.std(0, ddof=1) * 60 ** (-1 / 6)
    for i in (0, 17, 59):
        others = KernelDensity(bandwidth=1.0).fit(np.delete(rows, i, axis=0) / bandwidth)
        expected = others.score_samples(rows[i : i + 1] / bandwidth)[0] - np.log(bandwidth).sum()
        assert log_density(rows)[i] == pytest.approx(expected, abs=1e-9)


def test_kernel_densities_find_what_gaussians_share_in_few_columns() -> None:
    assert kde(*correlated(2000, 1, 0.8)) == pytest.approx(-0.5 * math.log(1 - 0.64), abs=0.08)


def test_the_gaussian_estimate_is_that_of_the_canonical_correlations() -> None:
    x, noise = np.random.default_rng(0).normal(size=(2, 500, 3))
    y = x[:, :2] + noise[:, :2]
    canonical = CCA(n_components=2, max_iter=5000, tol=1e-12).fit(x, y)
    left, right = canonical.transform(x, y)
    correlations = [np.corrcoef(left[:, i], right[:, i])[0, 1] for i in range(2)]
    plain = -0.5 * sum(math.log(1 - r**2) for r in correlations)
    bias = 0.5 * (log_determinant_bias(500, 3) + log_determinant_bias(500, 2) - log_determinant_bias(500, 5))
    assert gaussian(x, y) == pytest.approx(plain - bias, abs=1e-6)
    assert bias == pytest.approx(3 * 2 / (2 * 500), rel=0.05)


def test_the_gaussian_estimate_is_right_on_average_from_few_rows() -> None:
    found = [gaussian(*correlated(30, 3, 0.6, seed)) for seed in range(400)]
    error = float(np.std(found)) / math.sqrt(400)
    assert np.mean(found) == pytest.approx(-1.5 * math.log(1 - 0.36), abs=3 * error)


def test_the_gaussian_estimate_does_not_see_the_scale_nor_a_mixing_of_columns() -> None:
    x, y = correlated(200, 3, 0.6)
    mixing = np.random.default_rng(1).normal(size=(3, 3))
    assert gaussian(x @ mixing + 5, 1e3 * y) == pytest.approx(gaussian(x, y), abs=1e-8)


def test_the_copula_does_not_see_how_columns_are_stretched() -> None:
    x, y = correlated(2000, 2, 0.8)
    assert gaussian_copula(np.exp(3 * x), y**3) == pytest.approx(gaussian_copula(x, y), abs=1e-12)
    assert gaussian_copula(np.exp(3 * x), y**3) == pytest.approx(-math.log(1 - 0.64), abs=0.06)
    assert gaussian(np.exp(3 * x), y**3) < 0.7 * gaussian_copula(x, y)


def test_normal_scores_are_gaussian_and_keep_the_order() -> None:
    column = np.random.default_rng(0).exponential(size=(500, 1))
    scores = normal_scores(column)
    assert (np.argsort(scores[:, 0]) == np.argsort(column[:, 0])).all()
    assert scores.mean() == pytest.approx(0, abs=1e-12)
    assert scores.std() == pytest.approx(1, abs=0.02)


def test_a_gaussian_without_a_covariance_is_refused() -> None:
    x = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(ValueError, match="no column that is a linear combination of others"):
        gaussian(x, x[:, 0] + x[:, 1])
    with pytest.raises(ValueError, match="got 4 rows and 4 columns"):
        gaussian_pointwise([x[:4], np.random.default_rng(1).normal(size=(4, 2))])


@pytest.mark.parametrize("estimate", [ksg, ksg_improved, mixed_ksg, kde, gaussian, gaussian_copula])
def test_bad_input_is_refused_by_name(estimate: type) -> None:
    x = np.zeros((5, 2))
    with pytest.raises(ValueError, match="x and y must have the same number of rows; x has 5, y has 4"):
        estimate(x, np.zeros(4))
    with pytest.raises(ValueError, match="y contains NaN"):
        estimate(x, np.full(5, np.nan))
    with pytest.raises(ValueError, match=r"x must have shape \(n,\) or \(n, d\)"):
        estimate(np.zeros((5, 2, 2)), x)


@pytest.mark.parametrize("constant", [np.ones(50), np.column_stack([np.arange(50.0), np.full(50, 0.1)])])
def test_kernels_need_columns_that_vary(constant: Array) -> None:
    with pytest.raises(ValueError, match="y must vary in each of its columns; drop those that are constant"):
        kde(np.arange(50.0), constant)


def test_a_norm_must_be_known() -> None:
    with pytest.raises(ValueError, match="norm must be one of 'maximum', 'euclidean'; got 'taxi'"):
        ksg_improved(np.arange(5.0), np.arange(5.0), norm="taxi")


@pytest.mark.parametrize("k", [0, 5, 2.5])
def test_neighbours_must_be_fewer_than_rows(k: int) -> None:
    with pytest.raises(ValueError, match="n_neighbors must be an integer from 1 to 4 for 5 rows"):
        ksg(np.arange(5.0), np.arange(5.0), n_neighbors=k)


@pytest.mark.parametrize("width", [1, 3])
def test_the_bias_of_log_determinants_is_that_of_many_samples(width: int) -> None:
    rows = np.random.default_rng(0).normal(size=(20000, 8, width))
    centred = rows - rows.mean(axis=1, keepdims=True)
    _, logs = np.linalg.slogdet(centred.transpose(0, 2, 1) @ centred / 8)
    # The true log determinant is 0.
    assert log_determinant_bias(8, width) == pytest.approx(logs.mean(), abs=4 * logs.std() / np.sqrt(len(logs)))
