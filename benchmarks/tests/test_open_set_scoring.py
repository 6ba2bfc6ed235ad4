"""Answers of open-set methods at several thresholds."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from offmap.data import hold_out_classes
from offmap.metrics import open_set_summary
from offmap.openset import MSPClassifier
from offmap_bench.open_set_scoring import ALPHA, OpenSetTask, at_rates, best_f1, score
from offmap_bench.plain_scores import PlainScore


@pytest.fixture(scope="module")
def task() -> OpenSetTask:
    digits = load_digits()
    split = hold_out_classes(digits.data / 16, digits.target, known=range(5), test_size=0.5, seed=0)
    held_out = np.arange(len(split.y_train)) % 3 == 0
    X, y = split.X_train[~held_out], split.y_train[~held_out]
    return OpenSetTask(X, y, split.X_train[held_out], split.X_test, split.y_test, np.arange(5))


def test_the_own_rule_is_that_of_predict(task: OpenSetTask) -> None:
    method = MSPClassifier(rule="own", calibration=0.0, epochs=5, random_state=0)
    found = score(method, task)
    answers = method.predict(task.X_test)
    assert found["f1"] == open_set_summary(task.y_test, answers, task.known, method.unknown_label_)["f1"]


def test_rows_are_rejected_at_the_rate_of_the_development_rows(task: OpenSetTask) -> None:
    """The answers at 12 % are those of a model that the development rows calibrate."""
    method = MSPClassifier(rule="own", calibration=0.0, alpha=ALPHA, epochs=5, random_state=0)
    found = score(method, task)
    answers = method.recalibrate(task.X_dev).predict(task.X_test)
    wanted = open_set_summary(task.y_test, answers, task.known, method.unknown_label_)
    assert (found["accuracy, 12 %"], found["f1, 12 %"]) == (wanted["accuracy"], wanted["f1"])


def test_plain_scores_have_no_rule_of_their_own(task: OpenSetTask) -> None:
    found = score(PlainScore(random_state=0), task)
    assert np.isnan(found["f1"])
    assert found["f1, suggested rate"] > 0.8
    assert max(found["f1, 12 %"], found["f1, suggested rate"]) <= found["best f1"] + 0.02


def test_the_suggested_rate_follows_the_share_of_open_rows(task: OpenSetTask) -> None:
    """The more rows are open, the more known ones are worth rejecting to find them."""
    rng = np.random.default_rng(0)
    rates = []
    for share in (0.1, 0.8):
        is_open = rng.random(4000) < share
        p_value = np.where(is_open, rng.beta(0.4, 4, size=4000), rng.uniform(size=4000))
        labels = np.where(is_open, 9, 0)
        given = task._replace(y_test=labels, known=np.array([0]))
        rates.append(at_rates(p_value, np.zeros(4000, int), -1, given)["suggested rate"])
        assert best_f1(-p_value, np.zeros(4000, int), -1, given) <= 1
    assert rates[1] > 3 * rates[0]
