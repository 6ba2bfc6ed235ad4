"""The table that compares the two decision rules: its splits and its metrics."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from offmap.metrics import open_set_summary
from offmap.openset import MSPClassifier
from offmap_bench.tables.decision_rules import METRICS, ROWS_PER_CLASS, TABLES, compare_rules, sub_open_texts

DIGITS = load_digits()


def test_open_classes_are_a_half_that_is_never_trained_on() -> None:
    X, y = np.arange(2000), np.repeat(np.arange(10), 200)
    X_train, y_train, X_test, y_test, known = sub_open_texts(X, y, seed=0)
    assert len(known) == 5
    assert set(y_train) == set(known)
    assert set(y_test) == set(range(10))
    assert not set(X_train) & set(X_test)
    assert np.array_equal(y[X_train], y_train)
    counts = np.bincount(y_test)
    assert counts[known].tolist() == [round(0.3 * ROWS_PER_CLASS)] * 5
    assert 0.7 < np.delete(counts, known).mean() / counts[known].mean() < 1.3


def test_both_rules_are_those_of_a_method_with_that_rule() -> None:
    X_train, y_train, X_test, y_test, known = sub_open_texts(DIGITS.data, DIGITS.target, seed=0)
    fitted = {
        rule: MSPClassifier(rule=rule, epochs=10, random_state=0).fit(X_train, y_train)
        for rule in ("own", "calibrated")
    }
    found = compare_rules(fitted["own"], X_test, y_test, known)
    assert set(found) == set(METRICS)
    for rule, model in fitted.items():
        answers = model.predict(X_test)
        summary = open_set_summary(y_test, answers, known, -1)
        assert found[f"f1 {rule}"] == pytest.approx(summary["f1"])
        assert found[f"accuracy {rule}"] == pytest.approx(summary["accuracy"])
        assert found[f"false alarms {rule}"] == pytest.approx(np.mean(answers[np.isin(y_test, known)] == -1))
    assert found["f1 own"] != found["f1 calibrated"]


def test_every_method_is_compared_with_default_parameters() -> None:
    (table,) = TABLES
    for method in table.rows.values():
        assert method.get_params() == type(method)(rule="own").get_params()
