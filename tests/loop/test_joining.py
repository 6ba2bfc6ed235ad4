"""Which groups are suggested to join a known class."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from offmap.data import hold_out_classes, load
from offmap.loop import OpenWorld
from offmap.loop.joining import joined_class
from offmap.loop.state import Row
from offmap.openset import AnalyticClassifier


def rows(p_values: np.ndarray[tuple[int], np.dtype[np.float64]], closest: str = "a") -> list[Row]:
    return [Row(place, 1, bool(p <= 0.05), closest, 0.0, float(p), True) for place, p in enumerate(p_values)]


@pytest.mark.parametrize("size", [5, 20, 80])
def test_rows_of_a_known_class_are_taken_for_a_new_one_as_often_as_stated(size: int) -> None:
    rng = np.random.default_rng(size)
    missed = [joined_class(rows(rng.uniform(0, 0.2, size)), 0.2) is None for _ in range(2000)]
    assert 0.035 < np.mean(missed) < 0.065


def test_a_new_class_is_found_by_its_small_p_values() -> None:
    rng = np.random.default_rng(0)
    joined = [joined_class(rows(rng.uniform(0, 0.05, 12)), 0.2) is not None for _ in range(500)]
    assert np.mean(joined) < 0.01


def test_rows_of_several_classes_and_rows_without_p_values_join_none() -> None:
    usual = np.full(10, 0.15)
    assert joined_class(rows(usual), 0.2) == "a"
    assert joined_class([*rows(usual[:7]), *rows(usual[7:], "b")], 0.2) is None
    assert joined_class([*rows(usual[:8]), *rows(usual[8:], "b")], 0.2) == "a"
    assert joined_class([Row(0, 1, True, "a", 0.0, None, True)], 0.2) is None


def test_known_digits_that_came_out_unusual_are_suggested_to_join_their_class(tmp_path: Path) -> None:
    digits, known, new = load("digits"), list[bool](), list[bool]()
    for seed in (0, 5, 1):
        split = hold_out_classes(digits.X, np.asarray(digits.y), known=list(range(7)), test_size=0.5, seed=seed)
        classifier = AnalyticClassifier(width=500, calibration=0.3, random_state=0)
        with OpenWorld.create(tmp_path / str(seed), classifier=classifier) as world:
            world.teach(split.X_train, split.y_train)
            world.observe(split.X_test, ids=range(len(split.y_test)))
            for view in world.groups():
                label, count = Counter(split.y_test[np.array(view.rows, int)].tolist()).most_common(1)[0]
                if count > 0.9 * view.size:
                    (known if label < 7 else new).append(
                        view.joins_class and (label > 6 or view.nearest_class == label)
                    )
    assert min(len(known), len(new)) >= 10
    assert np.mean(known) > 0.6
    assert np.mean(new) < 0.15
