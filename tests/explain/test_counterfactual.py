"""Counterfactuals: they pass, and they are small."""

from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from offmap import Calibrated
from offmap.density import VAEDetector
from offmap.explain import explain

Rows = NDArray[np.float64]


def squares(X: Any) -> Rows:
    return np.asarray((np.asarray(X) ** 2).sum(axis=1))


@settings(max_examples=15)
@given(seed=st.integers(0, 99))
def test_no_smaller_set_of_changes_passes(seed: int) -> None:
    """For a sum over features and one donor the search must find the true minimum."""
    rng = np.random.default_rng(seed)
    normal, X = rng.normal(size=(200, 5)), 3 * rng.normal(size=(6, 5))
    model = Calibrated(squares).calibrate(normal)
    for row, found in zip(X, explain(model, X, reference=normal, n_neighbors=1), strict=True):
        change = found.counterfactual
        if not found.novel:
            assert change is None
            continue
        assert change is not None
        assert model.p_value(change.row[None])[0] > model.alpha
        donor = normal[change.donor]
        for size in range(1, len(change.changed)):
            for some in combinations(range(5), size):
                mixed = np.where(np.isin(range(5), some), donor, row)
                assert model.assess(mixed[None]).novel[0]


def test_every_flagged_row_gets_a_change_to_values_of_one_normal_row() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 6)) @ rng.normal(size=(6, 6))
    model = VAEDetector(epochs=20, random_state=0).fit(X[:600])
    rows = X[600:].copy()
    rows[:, 2] += 9 * X[:, 2].std()
    found = explain(model, rows, reference=X[:600])
    flagged = [each for each in found if each.novel]
    assert len(flagged) > 80
    changed = [each.counterfactual.row for each in flagged if each.counterfactual is not None]
    for each, p_value in zip(flagged, model.p_value(np.stack(changed)), strict=True):
        change = each.counterfactual
        assert change is not None
        assert change.p_value == p_value
        assert p_value > model.alpha
        kept = np.setdiff1d(np.arange(6), change.changed)
        np.testing.assert_array_equal(change.row[kept], rows[each.row][kept])
        np.testing.assert_array_equal(change.row[list(change.changed)], X[change.donor][list(change.changed)])
        assert change.before == tuple(rows[each.row][list(change.changed)])
        assert change.after == tuple(X[change.donor][list(change.changed)])
    assert np.mean([each.counterfactual.changed == (2,) for each in flagged if each.counterfactual]) > 0.8


def test_only_what_matters_is_changed_and_the_search_can_be_left_out() -> None:
    normal = np.random.default_rng(0).normal(size=(100, 2))
    model = Calibrated(lambda rows: np.asarray(rows)[:, 0]).calibrate(normal)
    [found] = explain(model, [[50.0, 0.0]], reference=normal)
    assert found.counterfactual is not None
    assert found.counterfactual.names == ("feature 0",)
    assert explain(model, [[50.0, 0.0]], reference=normal, counterfactual=False)[0].counterfactual is None


def test_a_change_that_is_not_needed_is_put_back() -> None:
    """The search tries four strongest parts and then six, so that five causes leave one part too many."""
    normal = np.random.default_rng(0).normal(size=(100, 12))
    model = Calibrated(lambda rows: (np.asarray(rows) > 5).sum(axis=1)).calibrate(normal)
    row = normal[:1].copy()
    row[0, [1, 3, 5, 7, 9]] = 8.0
    [found] = explain(model, row, reference=normal)
    assert found.counterfactual is not None
    assert found.counterfactual.changed == (1, 3, 5, 7, 9)
