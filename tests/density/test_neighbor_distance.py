"""The distance to the nearest reference rows against a plain loop."""

import numpy as np
import pytest

from offmap.density.neighbor_distance import NeighborDistance


@pytest.mark.parametrize("k", [1, 3, 25])
def test_the_distance_is_that_of_a_loop(k: int) -> None:
    rng = np.random.default_rng(0)
    reference, rows = rng.normal(size=(12, 3)), rng.normal(size=(7, 3))
    count = min(k, 11)

    def mean_distance(row: np.ndarray, others: np.ndarray) -> float:
        return float(np.sort(np.linalg.norm(others - row, axis=1))[:count].mean())

    own = [mean_distance(row, np.delete(reference, place, axis=0)) for place, row in enumerate(reference)]
    distance = NeighborDistance.fit(reference, k)
    np.testing.assert_allclose(distance(rows), [mean_distance(row, reference) / np.mean(own) for row in rows])
    # Reference rows are not their own neighbours.
    np.testing.assert_allclose(distance(reference), np.array(own) / np.mean(own))


def test_a_row_with_an_infinite_value_is_infinitely_far() -> None:
    distance = NeighborDistance.fit(np.random.default_rng(0).normal(size=(20, 2)), 3)
    found = distance(np.array([[0.0, np.inf], [np.nan, 0.0], [0.0, 0.0]]))
    assert np.isfinite(found).tolist() == [False, False, True]


@pytest.mark.parametrize("copies", [1, 2, 6])
def test_equal_rows_leave_a_unit_to_measure_in(copies: int) -> None:
    near, far = NeighborDistance.fit(np.ones((copies, 2)), 2)(np.array([[1.0, 2.0], [1.0, 3.0]]))
    assert 0 < near < far < np.inf
