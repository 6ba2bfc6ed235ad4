"""The metrics against naive loops over pairs and thresholds, and against scikit-learn."""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score, roc_curve

from offmap import metrics

REPEATABLE = settings(deadline=None, derandomize=True)
# Few distinct values, so that ties within and between the two sets are common.
SCORES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=45)
ALPHABETS: list[tuple[list[Hashable], Hashable]] = [
    ([0, 1, 2, 3, 4], -1),
    (["a", "b", "c", "d", "e"], "?"),
    (["a", "b", 3], -1),
]
DETECTION: list[Callable[..., object]] = [
    metrics.auroc,
    metrics.aupr_in,
    metrics.aupr_out,
    metrics.fpr95,
    metrics.detection_summary,
]
OPEN_SET: list[Callable[..., object]] = [
    metrics.open_accuracy,
    metrics.f1,
    metrics.f1_known,
    metrics.f1_open,
    metrics.open_set_summary,
]


def naive_auroc(normal: list[float], novel: list[float]) -> float:
    wins = sum((high > low) + 0.5 * (high == low) for high in novel for low in normal)
    return wins / (len(normal) * len(novel))


def naive_average_precision(negative: list[float], positive: list[float]) -> float:
    total, recall_before = 0.0, 0.0
    for threshold in sorted(set(negative + positive), reverse=True):
        found = sum(score >= threshold for score in positive)
        mistaken = sum(score >= threshold for score in negative)
        recall = found / len(positive)
        total += (recall - recall_before) * found / (found + mistaken)
        recall_before = recall
    return total


def naive_fpr95(negative: list[float], positive: list[float]) -> float:
    for threshold in sorted(set(positive), reverse=True):
        if 100 * sum(score >= threshold for score in positive) >= 95 * len(positive):
            return sum(score >= threshold for score in negative) / len(negative)
    raise AssertionError("the lowest threshold finds all")


@REPEATABLE
@given(SCORES, SCORES)
def test_auroc_is_the_share_of_ordered_pairs(normal: list[float], novel: list[float]) -> None:
    assert metrics.auroc(normal, novel) == pytest.approx(naive_auroc(normal, novel))


@REPEATABLE
@given(SCORES, SCORES)
def test_aupr_sums_precision_over_thresholds(normal: list[float], novel: list[float]) -> None:
    assert metrics.aupr_out(normal, novel) == pytest.approx(naive_average_precision(normal, novel))
    flipped = naive_average_precision([-score for score in novel], [-score for score in normal])
    assert metrics.aupr_in(normal, novel) == pytest.approx(flipped)


@REPEATABLE
@given(SCORES, SCORES)
def test_fpr95_walks_down_to_the_first_threshold_that_finds_enough(normal: list[float], novel: list[float]) -> None:
    assert metrics.fpr95(normal, novel) == pytest.approx(naive_fpr95(normal, novel))
    flipped = naive_fpr95([-score for score in novel], [-score for score in normal])
    assert metrics.fpr95(normal, novel, positive="normal") == pytest.approx(flipped)


@pytest.mark.parametrize("n", [1, 19, 20, 21, 40, 60, 100, 1000])
def test_fpr95_agrees_with_the_roc_curve(n: int) -> None:
    rng = np.random.default_rng(n)
    normal, novel = rng.normal(size=n), rng.normal(1.0, size=n)
    truth, scores = np.repeat([0, 1], n), np.concatenate([normal, novel])
    fpr, tpr, _ = roc_curve(truth, scores, drop_intermediate=False)
    assert metrics.fpr95(normal, novel) == pytest.approx(fpr[np.searchsorted(tpr, 0.95 - 1e-12)])


def test_the_two_sides_of_fpr95_differ() -> None:
    normal, novel = np.zeros(100), np.r_[np.full(90, 1.0), np.full(10, -1.0)]
    assert metrics.fpr95(normal, novel, positive="novel") == 1.0
    assert metrics.fpr95(normal, novel, positive="normal") == 0.1


@REPEATABLE
@given(st.lists(st.floats(allow_nan=False), min_size=1), st.lists(st.floats(allow_nan=False), min_size=1))
def test_scores_of_any_size_and_infinity_are_ranked(normal: list[float], novel: list[float]) -> None:
    assert metrics.auroc(normal, novel) == pytest.approx(naive_auroc(normal, novel))


def test_auroc_agrees_with_scikit_learn_on_continuous_scores() -> None:
    rng = np.random.default_rng(0)
    normal, novel = rng.normal(size=300), rng.normal(0.5, size=200)
    expected = roc_auc_score(np.repeat([0, 1], [300, 200]), np.concatenate([normal, novel]))
    assert metrics.auroc(normal, novel) == pytest.approx(expected)


def test_detection_summary_holds_each_metric() -> None:
    normal, novel = [0.0, 1.0, 2.0], [1.0, 3.0]
    assert metrics.detection_summary(normal, novel) == {
        "auroc": metrics.auroc(normal, novel),
        "aupr_in": metrics.aupr_in(normal, novel),
        "aupr_out": metrics.aupr_out(normal, novel),
        "fpr95_novel": metrics.fpr95(normal, novel, positive="novel"),
        "fpr95_normal": metrics.fpr95(normal, novel, positive="normal"),
    }


@pytest.mark.parametrize("metric", DETECTION)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "non-empty 1-D"),
        ([[1.0]], "non-empty 1-D"),
        (1.0, "non-empty 1-D"),
        ([1.0, np.nan], "1 of 2 scores are NaN"),
        (["a"], "1-D array of numbers"),
    ],
)
def test_bad_scores_are_refused_by_name(metric: Callable[..., object], bad: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"normal must .*{message}"):
        metric(bad, [1.0])
    with pytest.raises(ValueError, match=f"novel must .*{message}"):
        metric([1.0], bad)


def test_fpr95_refuses_another_positive_class() -> None:
    with pytest.raises(ValueError, match="positive must be"):
        metrics.fpr95([0.0], [1.0], positive="abnormal")  # type: ignore[arg-type]


def naive_f1(true: list[Hashable], pred: list[Hashable], label: Hashable) -> float:
    hits = sum(t == p == label for t, p in zip(true, pred, strict=True))
    total = sum(t == label for t in true) + sum(p == label for p in pred)
    return 2 * hits / total if total else np.nan


def mean_of_defined(values: list[float]) -> float:
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else np.nan


@st.composite
def predictions(draw: st.DrawFn) -> tuple[list[Hashable], list[Hashable], list[Hashable], Hashable]:
    """True labels, predictions, known classes and the unknown label; known classes may be absent from both."""
    alphabet, unknown = draw(st.sampled_from(ALPHABETS))
    classes = draw(st.lists(st.sampled_from(alphabet), min_size=1, unique=True))
    n = draw(st.integers(1, 30))
    true = draw(st.lists(st.sampled_from([*alphabet, unknown]), min_size=n, max_size=n))
    pred = draw(st.lists(st.sampled_from([*classes, unknown]), min_size=n, max_size=n))
    return true, pred, classes, unknown


@REPEATABLE
@given(predictions())
def test_open_set_metrics_count_all_unknown_classes_as_one(
    case: tuple[list[Hashable], list[Hashable], list[Hashable], Hashable],
) -> None:
    true, pred, classes, unknown = case
    merged = [label if label in classes else unknown for label in true]
    known = [naive_f1(merged, pred, label) for label in classes]
    of_open = naive_f1(merged, pred, unknown)
    hits = sum(t == p for t, p in zip(merged, pred, strict=True))
    assert metrics.open_accuracy(true, pred, classes, unknown) == pytest.approx(hits / len(true))
    assert metrics.f1_known(true, pred, classes, unknown) == pytest.approx(mean_of_defined(known), nan_ok=True)
    assert metrics.f1_open(true, pred, classes, unknown) == pytest.approx(of_open, nan_ok=True)
    assert metrics.f1(true, pred, classes, unknown) == pytest.approx(
        f1_score(*_as_words(merged, pred), average="macro")
    )
    assert metrics.f1(true, pred, classes, unknown) == pytest.approx(mean_of_defined([*known, of_open]))
    expected = {
        "accuracy": metrics.open_accuracy(true, pred, classes, unknown),
        "f1": metrics.f1(true, pred, classes, unknown),
        "f1_known": metrics.f1_known(true, pred, classes, unknown),
        "f1_open": metrics.f1_open(true, pred, classes, unknown),
    }
    assert metrics.open_set_summary(true, pred, classes, unknown) == pytest.approx(expected, nan_ok=True)


def _as_words(*labels: list[Hashable]) -> list[list[str]]:
    """scikit-learn takes no mix of strings and numbers."""
    return [[str(label) for label in some] for some in labels]


def test_perfect_answers_score_one_if_a_known_class_is_absent() -> None:
    found = metrics.open_set_summary(["a", "x"], ["a", "?"], classes=["a", "b"], unknown_label="?")
    assert found == {"accuracy": 1.0, "f1": 1.0, "f1_known": 1.0, "f1_open": 1.0}


def test_a_class_that_is_absent_but_predicted_counts_as_zero() -> None:
    found = metrics.open_set_summary(["a", "a", "x"], ["a", "b", "?"], classes=["a", "b"], unknown_label="?")
    assert found["f1_known"] == pytest.approx((2 / 3 + 0) / 2)
    assert found["f1"] == pytest.approx((2 / 3 + 0 + 1) / 3)


def test_what_never_occurs_is_undefined_and_leaves_the_mean_alone() -> None:
    only_known = metrics.open_set_summary([0, 1], [0, 1], classes=[0, 1], unknown_label=-1)
    assert only_known == pytest.approx({"accuracy": 1.0, "f1": 1.0, "f1_known": 1.0, "f1_open": np.nan}, nan_ok=True)
    only_open = metrics.open_set_summary([7, 8], [-1, -1], classes=[0, 1], unknown_label=-1)
    assert only_open == pytest.approx({"accuracy": 1.0, "f1": 1.0, "f1_known": np.nan, "f1_open": 1.0}, nan_ok=True)


def test_open_set_metrics_agree_with_scikit_learn_on_arrays() -> None:
    rng = np.random.default_rng(0)
    true, pred = rng.integers(0, 6, 200), rng.integers(-1, 4, 200)
    merged = np.where(true < 4, true, -1)
    found = metrics.open_set_summary(true, pred, np.arange(4), -1)
    assert found["accuracy"] == accuracy_score(merged, pred)
    assert found["f1"] == pytest.approx(f1_score(merged, pred, average="macro"))
    assert found["f1_open"] == pytest.approx(f1_score(merged, pred, labels=[-1], average="macro"))


def test_answering_always_open_scores_the_share_of_open_rows() -> None:
    true = np.repeat(["a", "b", "c", "d"], 25)
    found = metrics.open_set_summary(true, np.full(100, "?"), ["a"], "?")
    assert found["accuracy"] == 0.75
    assert found["f1_known"] == 0.0


@pytest.mark.parametrize("metric", OPEN_SET)
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y_true": []}, "y_true must be a non-empty 1-D"),
        ({"y_true": np.zeros((2, 2))}, "y_true must be a non-empty 1-D"),
        ({"y_true": [0.0, np.nan]}, "y_true must hold no NaN"),
        ({"y_pred": [0]}, "same length, not 2 and 1"),
        ({"y_pred": [0, 9]}, "y_pred holds 9"),
        ({"y_pred": [0, None]}, "y_pred holds None"),
        ({"y_pred": np.array(["0", "-1"])}, "y_pred holds '0'"),
        ({"classes": []}, "classes must be a non-empty 1-D"),
        ({"classes": [0, 0]}, "classes must be distinct"),
        ({"classes": [0, -1]}, "without unknown_label -1"),
    ],
)
def test_bad_labels_are_refused_by_name(
    metric: Callable[..., object], changed: dict[str, object], message: str
) -> None:
    arguments: dict[str, object] = {"y_true": [0, 5], "y_pred": [0, -1], "classes": [0, 1], "unknown_label": -1}
    with pytest.raises(ValueError, match=message):
        metric(**(arguments | changed))


@REPEATABLE
@given(st.integers(0, 200))
def test_the_auroc_of_each_entity_is_that_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    familiarity, kinds = rng.integers(6, size=(12, 3)).astype(float), rng.integers(3, size=(12, 3))
    found = metrics.entity_auroc(familiarity, kinds == 0, kinds == 1)
    for entity in range(3):
        used = kinds[:, entity] < 2
        if len(np.unique(kinds[used, entity])) < 2:
            assert np.isnan(found[entity])
        else:
            expected = roc_auc_score(kinds[used, entity] == 0, familiarity[used, entity])
            assert found[entity] == pytest.approx(expected)


def test_the_auroc_of_entities_needs_matrices_of_one_shape() -> None:
    with pytest.raises(ValueError, match="must be rows × entities, all of one shape"):
        metrics.entity_auroc(np.zeros((4, 2)), np.zeros((4, 2), bool), np.zeros((4, 3), bool))


@pytest.mark.parametrize("kind", [torch.tensor, lambda labels: pd.Series(labels, dtype="Int64"), tuple])
def test_labels_may_be_tensors_and_series(kind: Callable[[list[int]], Any]) -> None:
    found = metrics.open_set_summary(kind([0, 1, 7]), kind([0, 1, -1]), classes=[0, 1], unknown_label=-1)
    assert set(found.values()) == {1.0}


@pytest.mark.parametrize(
    ("y_true", "message"),
    [
        (["0", "1", "7"], "y_true holds '[01]' where classes have [01]; give both one type"),
        (pd.DataFrame({"a": [0, 1, 7]}), "y_true must be a non-empty 1-D sequence"),
        (pd.Series([0, 1, None], dtype="Int64"), "y_true must hold no NaN"),
    ],
)
def test_labels_that_would_all_count_as_open_are_refused(y_true: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        metrics.open_set_summary(y_true, [0, 1, -1], classes=[0, 1], unknown_label=-1)


@pytest.mark.parametrize(
    ("familiarity", "normal", "novel", "message"),
    [
        ([[3.0], [1.0]], [[1], [-1]], [[-1], [1]], "normal must hold booleans, or 0 and 1"),
        ([["3"], ["10"]], [[1], [0]], [[0], [1]], "familiarity must hold numbers"),
        ([[3.0], [1.0]], [[1], [1]], [[0], [1]], "row 1 is normal and novel for entity 0"),
        ([[np.nan], [1.0]], [[1], [0]], [[0], [1]], "familiarity must hold no NaN"),
    ],
)
def test_the_auroc_of_entities_refuses_values_that_mean_nothing(
    familiarity: Any, normal: Any, novel: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        metrics.entity_auroc(familiarity, normal, novel)
