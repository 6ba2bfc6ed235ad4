"""The benchmark of mixtures: its problems are what they say, and plain rivals find what is there."""

import numpy as np
import pytest

from offmap.metrics import entity_auroc
from offmap_bench.mixture_rivals import PooledMixture, Rival, shares_of
from offmap_bench.tables import collaborative_digits
from offmap_bench.tables import collaborative_mixtures as mixtures

(TABLE,) = mixtures.TABLES
(SMALL,) = collaborative_digits.TABLES


def test_shares_lie_between_those_of_the_rows_and_the_prior() -> None:
    # Rows that can only come from the first of two components.
    certain = np.array([[0.0, -1e3]] * 6)
    np.testing.assert_allclose(shares_of(certain, np.array([0.5, 0.5]), worth=2.0), [7 / 8, 1 / 8], atol=1e-6)


def test_known_components_rank_by_the_true_ratio() -> None:
    problem = mixtures.gaussians(0)
    assert problem.centres is not None
    rival = PooledMixture(centres=problem.centres, worth=3.0).fit(problem.X, problem.entities, 0)
    ids = np.arange(40)
    found = entity_auroc(rival.familiarity(problem.asked, ids), problem.own[:, :40], ~problem.own[:, :40]).mean()
    assert found > 0.78
    strangers = np.roll(ids, 1)
    swapped = entity_auroc(
        rival.familiarity(problem.asked, strangers), problem.own[:, :40], ~problem.own[:, :40]
    ).mean()
    assert abs(swapped - 0.5) < 0.1


def test_no_row_is_both_learnt_from_and_asked_about() -> None:
    for problem in (mixtures.gaussians(3), mixtures.digits(3), mixtures.apart(3)):
        learnt = {row.tobytes() for row in problem.X}
        # Some of the small digits are drawn twice, pixel by pixel.
        assert np.mean([row.tobytes() in learnt for row in problem.asked]) < 0.01
        assert problem.own.shape[0] == len(problem.asked)
        assert (problem.entities >= problem.first_added).any()


@pytest.mark.parametrize("row", [name for name, method in TABLE.rows.items() if isinstance(method, Rival)])
def test_rivals_run(row: str) -> None:
    found = TABLE.measure(TABLE.method(row, "cpu"), mixtures.DIGITS, 0)
    assert set(found) == set(TABLE.metrics)
    assert np.isnan(found["seen"]) if row == "true components" else 0.5 < found["seen"] < 1


@pytest.mark.parametrize("row", SMALL.rows)
def test_rows_of_small_digits_run(row: str) -> None:
    found = SMALL.measure(SMALL.method(row, "cpu").set_params(epochs=1), mixtures.DIGITS, 0)
    assert set(found) == set(SMALL.metrics)
