"""The table of drift: ranks among a fixed set, and first alarms."""

import numpy as np
import pytest

from offmap.monitor import semi_online_p_values
from offmap_bench.tables.drift import Ranking, Shifted, first_alarms


def test_the_first_row_is_ranked_alike_and_later_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    calibration, stream, ties = rng.normal(size=(4, 30)), rng.normal(size=(4, 50)), rng.random((4, 50))
    online, fixed = (Ranking(online=online).p_values(calibration, stream, ties) for online in (True, False))
    np.testing.assert_allclose(online[:, 0], fixed[:, 0])
    assert not np.allclose(online, fixed)
    alone = semi_online_p_values(np.sort(calibration), stream[:, 7:8], ties[:, 7:8])
    np.testing.assert_allclose(fixed[:, 7:8], alone)


def test_a_shift_is_alarmed_after_it_begins() -> None:
    rng = np.random.default_rng(0)
    stream = rng.normal(size=(20, 500)) + np.repeat([0.0, 2.0], 250)
    found = first_alarms(Ranking(online=True), rng.normal(size=(20, 200)), stream, rng.random((20, 500)))
    assert 250 < np.median(found) < 320


def test_a_shift_of_one_feature_moves_the_distance_by_less() -> None:
    rng = np.random.default_rng(0)
    moved = [Shifted(features=count).novelty(rng, 400, 200) for count in (0, 1, 10)]
    shifts = [float((rows[:, 200:].mean() - rows[:, :200].mean()) / rows[:, :200].std()) for rows in moved]
    assert shifts[0] == pytest.approx(1.0, abs=0.02)
    assert shifts[0] > shifts[1] > 2 * shifts[2] > 0
