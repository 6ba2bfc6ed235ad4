"""Total correlation as a sum: over lines and trees, over any estimator, of variables of any width."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from offmap.dependence import JS, TotalCorrelation, total_correlation
from offmap.dependence.decomposition import DECOMPOSITIONS, terms
from offmap.dependence.registry import NETWORKS, NONPARAMETRIC


@given(variables=st.integers(2, 20), decomposition=st.sampled_from(["line", "tree"]))
@settings(deadline=None)
def test_every_pair_of_variables_meets_in_exactly_one_term(variables: int, decomposition: str) -> None:
    met = [pair for left, right in terms(decomposition, variables) for pair in itertools.product(left, right)]
    assert sorted(met) == [*itertools.combinations(range(variables), 2)]
    assert len(terms(decomposition, variables)) == variables - 1


def test_a_tree_splits_as_the_algorithm_says() -> None:
    assert terms("tree", 5)[0] == (range(0, 3), range(3, 5))
    assert terms("tree", 4) == [
        (range(0, 2), range(2, 4)),
        (range(0, 1), range(1, 2)),
        (range(2, 3), range(3, 4)),
    ]


def gaussian_groups(widths: list[int], seed: int) -> tuple[list[np.ndarray], float]:
    """Gaussian variables with a random covariance, and their total correlation as the sample's covariance has it."""
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(400, sum(widths))) @ rng.normal(size=(sum(widths), sum(widths)))
    groups = np.split(mixed, np.cumsum(widths)[:-1], axis=1)
    logs = [np.linalg.slogdet(np.atleast_2d(np.cov(part.T)))[1] for part in (*groups, mixed)]
    return groups, float(sum(logs[:-1]) - logs[-1]) / 2


@given(widths=st.lists(st.integers(1, 4), min_size=2, max_size=6), seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=25)
def test_line_and_tree_and_all_at_once_are_the_same_sum_for_the_exact_estimator(widths: list[int], seed: int) -> None:
    groups, expected = gaussian_groups(widths, seed)
    found = [
        total_correlation(groups, "gaussian", decomposition=shape, random_state=0).value
        for shape in ("line", "tree", "direct")
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-5)
    assert found[0] == pytest.approx(found[2], rel=1e-5)
    # What is left between them is the correction of the bias, of the order of columns squared over rows.
    assert found[0] == pytest.approx(expected, abs=2 * sum(widths) ** 2 / 400)
    rows = [torch.from_numpy(group) for group in groups]
    for shape in DECOMPOSITIONS:
        module = TotalCorrelation(widths, decomposition=shape, estimator="gaussian")
        assert module.value(rows).item() == pytest.approx(found[0], rel=1e-4)


@pytest.mark.parametrize("decomposition", DECOMPOSITIONS)
@pytest.mark.parametrize("estimator", [*NETWORKS, *NONPARAMETRIC])
def test_any_estimator_serves_either_decomposition(decomposition: str, estimator: str) -> None:
    widths = [3, 1, 2]
    options = {"hidden": (8,)} if estimator in NETWORKS else {}
    correlation = TotalCorrelation(widths, decomposition=decomposition, estimator=estimator, **options).eval()
    groups = [torch.randn(40, width, dtype=torch.float32) for width in widths]
    values = correlation.values(groups)
    assert values.shape == (2,)
    torch.testing.assert_close(correlation.value(groups), values.sum())
    torch.testing.assert_close(correlation.pointwise(groups).mean(), values.sum())


def test_the_sides_of_each_term_are_the_columns_of_its_variables() -> None:
    groups = [torch.randn(5, width) for width in (3, 1, 2)]
    left, right = TotalCorrelation([3, 1, 2], decomposition="line", estimator="js", hidden=(4,)).pairs(groups)
    assert torch.equal(left[0], torch.cat([groups[0], torch.zeros(5, 1)], 1))
    assert torch.equal(left[1], torch.cat(groups[:2], 1))
    assert torch.equal(right[0], torch.cat([groups[1], torch.zeros(5, 1)], 1))
    assert torch.equal(right[1], groups[2])


def test_two_variables_are_a_mutual_information() -> None:
    correlation = TotalCorrelation([3, 2], estimator=JS, hidden=(8,)).eval()
    alone = JS(3, 2, hidden=(8,)).eval()
    alone.load_state_dict(correlation.estimator.state_dict())
    x, y = torch.randn(9, 3), torch.randn(9, 2)
    torch.testing.assert_close(correlation.value([x, y]), alone.value(x, y))


@pytest.mark.parametrize("estimator", ["infonce", "club", "js"])
def test_it_can_be_trained_through(estimator: str) -> None:
    correlation = TotalCorrelation([2, 3, 1, 2], estimator=estimator, hidden=(8,))
    groups = [torch.randn(16, width, requires_grad=True) for width in (2, 3, 1, 2)]
    correlation.value(groups).backward()
    assert all(group.grad is not None and group.grad.abs().sum() > 0 for group in groups)


def test_the_sum_says_what_its_terms_say() -> None:
    lower, upper = TotalCorrelation([1, 1], estimator="nwj"), TotalCorrelation([1, 1], estimator="club")
    assert (lower.bound, lower.sound_to_maximise, lower.sound_to_minimise) == ("lower", True, False)
    assert (upper.bound, upper.sound_to_maximise, upper.sound_to_minimise) == ("upper", False, True)


def test_a_nonparametric_estimator_has_no_loss() -> None:
    correlation = TotalCorrelation([1, 1], estimator="ksg", n_neighbors=4)
    with pytest.raises(ValueError, match="loss needs an estimator with parameters"):
        correlation.loss([torch.randn(9, 1), torch.randn(9, 1)])


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="decomposition must be one of 'line', 'tree'; got 'star'"):
        TotalCorrelation([1, 1], decomposition="star")
    with pytest.raises(ValueError, match="at least 2 variables; got 1"):
        TotalCorrelation([1])
    with pytest.raises(ValueError, match="estimator must be one of"):
        TotalCorrelation([1, 1], estimator="magic")
    correlation = TotalCorrelation([2, 1], hidden=(4,))
    with pytest.raises(ValueError, match=r"groups must be tensors \(n, width\) with the widths \(2, 1\); got"):
        correlation.value([torch.zeros(4, 2), torch.zeros(4, 2)])
    with pytest.raises(ValueError, match="groups must be"):
        correlation.value([torch.zeros(4, 2), torch.zeros(3, 1)])


@pytest.mark.parametrize("estimator", [*NETWORKS])
def test_tensors_of_any_precision_are_taken(estimator: str) -> None:
    correlation = TotalCorrelation([2, 1], estimator=estimator, hidden=(4,)).eval()
    groups = [torch.randn(9, width) for width in (2, 1)]
    wide = [group.double().requires_grad_() for group in groups]
    torch.testing.assert_close(correlation.value(wide), correlation.value(groups))
    correlation.loss(wide).backward()
    assert wide[0].grad is not None
    assert wide[0].grad.dtype == torch.float64


def test_arrays_are_refused_by_name() -> None:
    correlation, arrays = TotalCorrelation([2, 1], hidden=(4,)), [np.zeros((9, 2)), np.zeros((9, 1))]
    with pytest.raises(TypeError, match=r"groups\[0\] must be a tensor; got ndarray, which torch.as_tensor converts"):
        correlation.value(arrays)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="x must be a tensor; got ndarray"):
        JS(2, 1, hidden=(4,)).value(*arrays)  # type: ignore[arg-type]
