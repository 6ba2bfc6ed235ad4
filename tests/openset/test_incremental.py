"""What holds for every classifier that learns on after its fit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import offmap
from offmap.calibration import CalibrationWarning
from offmap.openset import AnalyticClassifier, ANSClassifier
from offmap.openset.incremental import IncrementalClassifier

Array = NDArray[Any]

CENTRES = np.random.default_rng(9).normal(size=(6, 5)) * 4
ANS: dict[str, Any] = {"head_hidden": (8,), "steps": 20, "space": "raw", "closed_set_width": 40}
MAKERS: dict[str, Callable[..., IncrementalClassifier]] = {
    "analytic": lambda **given: AnalyticClassifier(width=60, random_state=0, **given),
    "ans, logistic": lambda **given: ANSClassifier(random_state=0, **ANS, **given),
    "ans, analytic": lambda **given: ANSClassifier(random_state=0, closed_set="analytic", **ANS, **given),
}
every_method = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def rows_of(*labels: int, rows: int = 40, seed: int = 0) -> tuple[Array, Array]:
    y = np.repeat(labels, rows)
    return CENTRES[y] + np.random.default_rng(seed).normal(size=(len(y), 5)), y


def answers(model: IncrementalClassifier, X: Array) -> tuple[bytes, bytes]:
    return model.novelty(X).tobytes(), model.predict_proba(X).tobytes()


@every_method
def test_a_copy_that_learns_leaves_the_model_as_it_was(make: Callable[..., IncrementalClassifier]) -> None:
    X, y = rows_of(0, 2)
    model = make(calibration=0.4, alpha=0.1).fit(X, y)
    before, history = answers(model, X), dict(model.history_)
    for copied in (model.at(alpha=0.2), model.at(alpha=0.2)):
        copied.partial_fit(*rows_of(1, 0))
        assert copied.classes_.tolist() == [0, 1, 2]
    assert answers(model, X) == before
    assert model.history_ == history


def test_a_copy_that_forgets_leaves_the_model_as_it_was() -> None:
    X, y = rows_of(0, 1, 2)
    model = AnalyticClassifier(width=60, calibration=0.4, alpha=0.1, random_state=0).fit(X, y)
    before = answers(model, X)
    model.at(alpha=0.2).remove_class(1)
    model.at(alpha=0.2).remove_rows(model.rows_[:3], model.row_labels_[:3])
    assert answers(model, X) == before


@every_method
def test_the_promise_covers_classes_once_rows_of_them_are_held_out(make: Callable[..., IncrementalClassifier]) -> None:
    X, y = rows_of(0, 1)
    model = make(calibration=0.4, alpha=0.1).fit(np.r_[X, CENTRES[[5]]], np.r_[y, 5])
    assert model.uncovered_ == ["5"]
    model.partial_fit(CENTRES[[3, 4]], [3, 4])
    assert model.uncovered_ == ["3", "4", "5"]
    model.partial_fit(*rows_of(2, 5))
    assert model.uncovered_ == ["3", "4"]
    model.partial_fit(*rows_of(3), calibrate=False)
    model.partial_fit(CENTRES[[2]], [2])
    assert model.uncovered_ == ["3", "4"]
    assert "too few rows to hold any out: 3, 4." in model.promise_in_words


def test_the_promise_speaks_of_no_class_that_was_removed() -> None:
    X, y = rows_of(0, 1)
    model = AnalyticClassifier(width=60, calibration=0.4, alpha=0.1, random_state=0)
    model.fit(np.r_[X, CENTRES[[5]]], np.r_[y, 5]).remove_class(5)
    assert model.uncovered_ == []
    assert "5" not in model.promise_in_words.partition("It does not cover")[2]


def test_a_merged_model_covers_what_any_shard_covers() -> None:
    X, y = rows_of(0, 1)
    first = AnalyticClassifier(width=60, calibration=0.4, alpha=0.1, random_state=0).fit(X, y)
    shards = [
        first.fit_shard(np.r_[rows_of(0, 2)[0], CENTRES[[3, 5]]], np.r_[rows_of(0, 2)[1], 3, 5]),
        first.fit_shard(np.r_[rows_of(1, 3)[0], CENTRES[[0]]], np.r_[rows_of(1, 3)[1], 0]),
    ]
    assert [shard.uncovered_ for shard in shards] == [["1", "3", "5"], ["0"]]
    assert shards[0].merged_with(shards[1:]).uncovered_ == ["5"]


@every_method
def test_rows_of_recalibrate_that_are_lost_are_warned_of(
    make: Callable[..., IncrementalClassifier], tmp_path: Path
) -> None:
    X, y = rows_of(0, 1)
    model = make(calibration=0.4, alpha=0.1).fit(np.r_[X, CENTRES[[5]]], np.r_[y, 5])
    again = model.recalibrate(rows_of(0, 1, rows=250, seed=1)[0]).recalibrate(rows_of(0, 1, rows=200, seed=1)[0])
    assert (len(again.calibration_novelty_), again.uncovered_) == (400, [])
    again.save(tmp_path / "model.safetensors")
    for recalibrated in (again.at(alpha=0.2), offmap.load(tmp_path / "model.safetensors")):
        with pytest.warns(CalibrationWarning, match="rows of recalibrate no longer .* call recalibrate again"):
            recalibrated.partial_fit(X[:2], y[:2], calibrate=False)
        assert (len(recalibrated.calibration_novelty_), recalibrated.uncovered_) == (32, ["5"])
        recalibrated.partial_fit(X[:2], y[:2], calibrate=False)
    assert (len(again.calibration_novelty_), again.uncovered_) == (400, [])
    assert again.fit(X, y).partial_fit(X[:2], y[:2]).uncovered_ == []


def test_a_file_with_other_things_than_names_of_classes_is_refused(tmp_path: Path) -> None:
    X, y = rows_of(0, 1)
    model = AnalyticClassifier(width=60, calibration=0.4, alpha=0.1, random_state=0).fit(X, y).recalibrate(X)
    model.uncovered_before_ = [5]
    with pytest.raises(ValueError, match="uncovered_before_ must hold the names of classes"):
        model.save(tmp_path / "model.safetensors")
