"""Planted causes, and the tables that count how often they are named."""

import numpy as np
import pytest

from offmap_bench.planted_causes import join, plant, top_share
from offmap_bench.tables.explanations import TABLES, rival, within


def test_shifted_values_lie_five_deviations_away_and_the_rest_is_untouched() -> None:
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(200, 6)) * [1, 2, 3, 4, 5, 6]
    planted = plant(normal[:50], normal, np.full(50, 2), "shifted", rng)
    moved = np.abs(planted.rows - normal[:50]) / normal.std(axis=0)
    np.testing.assert_allclose(moved[planted.changed], 5)
    assert (moved[~planted.changed] == 0).all()
    assert (planted.changed.sum(axis=1) == 2).all()


def test_swapped_values_are_those_of_other_rows_and_differ_enough() -> None:
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(300, 4))
    planted = plant(normal[:40], normal, np.full(40, 1), "swapped", rng)
    for row, feature in np.argwhere(planted.changed):
        assert planted.rows[row, feature] in normal[:, feature]
        assert abs(planted.rows[row, feature] - normal[row, feature]) >= 2 * normal[:, feature].std()


def test_a_row_counts_only_if_all_changed_features_are_on_top() -> None:
    changed = np.array([[True, True, False], [True, True, False]])
    assert top_share(np.array([[2.0, 3.0, 1.0], [2.0, 1.0, 3.0]]), changed) == 0.5


def test_a_part_is_foreign_if_half_of_its_words_are() -> None:
    assert within("and who won the cup?", "who won the cup")
    assert not within("where is my card", "who won the cup")
    assert join("a b.", "c d", np.random.default_rng(0)).count("b") == 1


def test_the_rival_blames_the_part_that_is_least_like_known_texts() -> None:
    known = ["where is my card", "block my card please"]
    assert rival(["where is my card, who won the cup?"], known) == ["who won the cup?"]


@pytest.mark.filterwarnings("ignore::offmap.calibration.CalibrationWarning")
def test_the_table_measures_what_it_names() -> None:
    table = TABLES[0]
    found = table.measure(table.method("k-nearest, exact", "cpu"), "breast-cancer, shifted", 5)
    assert set(found) == set(table.metrics)
    assert found["top"] > 0.9
    assert found["passes"] == 1
