"""Ridge regression on random features: sums over rows, in any order."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from numpy.typing import NDArray

from offmap.data import hold_out_classes, load
from offmap.metrics import auroc
from offmap.openset import AnalyticClassifier, MSPClassifier
from offmap.openset.incremental import IncrementalClassifier

Array = NDArray[Any]


def blobs(classes: int, rows: int = 30, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(classes), rows)
    return rng.normal(size=(classes, 5))[y] * 4 + rng.normal(size=(len(y), 5)), y


def model(**parameters: Any) -> AnalyticClassifier:
    settings: dict[str, Any] = {"width": 80, "rule": "own", "calibration": 0, "random_state": 0} | parameters
    return AnalyticClassifier(**settings)


def balanced(H: Array, y: Array, weight: float | None = None) -> tuple[Array, Array]:
    """The scatter within classes plus each mean, and the means, each as many times as a class has rows on average."""
    means = np.stack([H[y == label].mean(axis=0) for label in np.unique(y)])
    apart = H - means[np.unique(y, return_inverse=True)[1]]
    weight = len(H) / len(means) if weight is None else weight
    return apart.T @ apart + weight * means.T @ means, weight * means.T


def ridge_scores(classifier: AnalyticClassifier, X: Array, y: Array, rows: Array) -> tuple[Array, Array]:
    """Scores and novelty by the formula, in double precision: each class counts as the mean number of rows."""
    network = classifier.network_
    scale, mean = network.scale.scale.double().numpy(), network.scale.mean.double().numpy()
    W, b = network.projection.double().numpy(), network.shift.double().numpy()

    def features(x: Array) -> Array:
        return np.maximum(((x - mean) / scale) @ W + b, 0)

    G, Q = balanced(features(X), y)
    inverse = np.linalg.inv(G + classifier.penalty * np.trace(G) / len(G) * np.eye(len(G)))
    S = features(rows) @ inverse @ Q
    corners = np.eye(len(classifier.classes_))
    distance = [min(((s - corner) ** 2).sum() for corner in corners) for s in S]
    return S, np.array(distance) + np.einsum("ij,jk,ik->i", features(rows), inverse, features(rows))


@limits(max_examples=15)
@given(cuts=st.lists(st.integers(1, 149), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_any_order_of_learning_gives_the_solution_on_all_rows(cuts: list[int], seed: int) -> None:
    X, y = blobs(5)
    order = np.random.default_rng(seed).permutation(len(y))
    order = np.concatenate([[0, 149], order[~np.isin(order, [0, 149])]])
    parts = np.split(order, sorted({max(cut, 2) for cut in cuts}))
    grown = model().fit(X[parts[0]], y[parts[0]])
    for part in parts[1:]:
        grown.partial_fit(X[part], y[part])
    rows = blobs(5, 10, seed=1)[0]
    scores, novelty = ridge_scores(grown, X, y, rows)
    assert grown.classes_.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(grown.novelty(rows), novelty, atol=1e-4)
    assert (grown.predict_closed(rows) == scores.argmax(axis=1)).all()


@pytest.mark.parametrize("classes", range(2, 21))
def test_a_row_scores_the_same_alone_for_any_number_of_classes(classes: int) -> None:
    rows = 3 * np.random.default_rng(1).normal(size=(12, 5))
    classifier = model(width=96).fit(*blobs(classes, 20))
    alone = [classifier.novelty(rows[[place]])[0] for place in range(len(rows))]
    assert classifier.novelty(rows).tolist() == alone


def test_learning_one_after_another_equals_learning_together_to_a_millionth() -> None:
    X, y = blobs(6)
    first = y < 2
    together = model().fit(X[first], y[first]).partial_fit(X[~first], y[~first])
    apart = model().fit(X[first], y[first])
    for label in (5, 3, 2, 4):
        apart.partial_fit(X[y == label], y[y == label])
    for name in ("gram", "sums", "weights", "whitening"):
        one, other = getattr(together.network_, name).numpy(), getattr(apart.network_, name).numpy()
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_a_removed_class_leaves_no_trace() -> None:
    X, y = blobs(4)
    before = model(rule="calibrated", calibration=0.3).fit(X[y < 3], y[y < 3])
    after = model(rule="calibrated", calibration=0.3).fit(X[y < 3], y[y < 3]).partial_fit(X[y == 3], y[y == 3])
    assert after.predict_closed(X[y == 3]).tolist() == [3] * 30
    after.remove_class(3)
    np.testing.assert_allclose(after.network_.gram.numpy(), before.network_.gram.numpy(), atol=1e-9)
    np.testing.assert_allclose(after.novelty(X), before.novelty(X), atol=1e-5)
    assert after.classes_.tolist() == [0, 1, 2]
    assert after.threshold_ == pytest.approx(before.threshold_, abs=1e-5)


def test_removed_rows_leave_no_trace_and_only_learnt_rows_can_be_removed() -> None:
    X, y = blobs(3)
    wrong = y.copy()
    wrong[:5] = 2
    right = model().fit(X, y)
    mended = model().fit(X, wrong).partial_fit(X[:5], y[:5]).remove_rows(X[:5], wrong[:5])
    np.testing.assert_allclose(mended.network_.gram.numpy(), right.network_.gram.numpy(), atol=1e-9)
    np.testing.assert_allclose(mended.novelty(X), right.novelty(X), atol=1e-5)
    assert sorted(mended.row_labels_.tolist()) == sorted(y.tolist())
    before = mended.novelty(X)
    for rows, labels in ((X[:1], [2]), (X[[7, 7]], [0, 0]), (X[:1] + 1, [0])):
        with pytest.raises(ValueError, match="was not learnt as"):
            mended.remove_rows(rows, labels)
    assert mended.novelty(X).tobytes() == before.tobytes()
    bare = model(keep_rows=False).fit(X, wrong).partial_fit(X[:5], y[:5]).remove_rows(X[:5], wrong[:5])
    np.testing.assert_allclose(bare.novelty(X), right.novelty(X), atol=1e-5)


@pytest.mark.parametrize("keep_rows", [True, False])
def test_a_class_without_its_last_row_is_forgotten_with_its_held_out_rows(keep_rows: bool) -> None:
    X, y = blobs(4)
    settings: dict[str, Any] = {"rule": "calibrated", "calibration": 0.3, "alpha": 0.1}
    whole = model(**settings).fit(X, y)
    rows, labels = whole.rows_[whole.row_labels_ == 2], whole.row_labels_[whole.row_labels_ == 2]
    expected = model(**settings).fit(X, y).remove_class(2)
    found = model(**settings, keep_rows=keep_rows).fit(X, y).remove_rows(rows, labels)
    assert found.classes_.tolist() == [0, 1, 3]
    assert sorted(set(found.held_out_labels_.tolist())) == [0, 1, 3]
    assert found.threshold_ == pytest.approx(expected.threshold_)
    np.testing.assert_allclose(found.novelty(X), expected.novelty(X), atol=1e-6)


def test_the_last_row_of_one_of_two_classes_cannot_be_removed() -> None:
    X, y = blobs(2)
    classifier = model().fit(X, y)
    before = classifier.novelty(X)
    with pytest.raises(ValueError, match="needs two classes"):
        classifier.remove_rows(X[y == 1], y[y == 1])
    assert classifier.novelty(X).tobytes() == before.tobytes()


@pytest.mark.parametrize(
    ("label", "message"), [(-5, "label -5, which is no known class: 0, 1, 2"), (7, "label 7, which"), ("0", "integers")]
)
@pytest.mark.parametrize("method", ["remove_rows", "left_out_novelty"])
def test_labels_that_are_no_class_are_not_taken_for_a_neighbouring_one(method: str, label: Any, message: str) -> None:
    X, y = blobs(3)
    classifier = model(keep_rows=False).fit(X, y)
    before = classifier.novelty(X)
    with pytest.raises(ValueError, match=message):
        getattr(classifier, method)(X[:1], [label])
    assert classifier.novelty(X).tobytes() == before.tobytes()


def test_the_threshold_follows_what_was_learnt() -> None:
    X, y = blobs(6, rows=100)
    classifier = model(rule="calibrated", calibration=0.3, alpha=0.1).fit(X[y < 3], y[y < 3])
    classifier.partial_fit(X[y >= 3], y[y >= 3])
    assert len(classifier.calibration_novelty_) == 180
    fresh, _ = blobs(6, rows=100, seed=0)
    assert classifier.predict(fresh + 0.01).tolist().count(-1) < 0.15 * len(fresh)
    rows = len(classifier.held_out_rows_)
    classifier.partial_fit(X[:20], y[:20], calibrate=False)
    assert len(classifier.held_out_rows_) == rows


@pytest.mark.parametrize("fewer", [0, 3, 7])
def test_a_row_left_out_scores_as_if_it_had_not_trained(fewer: int) -> None:
    X, y = (part[: 24 - fewer] for part in blobs(3, rows=8))
    classifier = model(width=30).fit(X, y)
    H = classifier.network_.features(torch.from_numpy(X).float()).double().numpy()
    level = classifier.penalty * np.trace(balanced(H, y)[0]) / 30
    naive = []
    for row in range(len(X)):
        kept = np.arange(len(X)) != row
        G, Q = balanced(H[kept], y[kept], weight=len(H) / 3)
        inverse = np.linalg.inv(G + level * np.eye(30))
        # A class of this row alone is gone: its score is 0.
        scores = np.pad(H[row] @ inverse @ Q, (0, 3 - Q.shape[1]))
        naive.append(min(((scores - corner) ** 2).sum() for corner in np.eye(3)) + H[row] @ inverse @ H[row])
    np.testing.assert_allclose(classifier.left_out_novelty(X, y), naive, rtol=1e-3, atol=1e-4)


def test_classes_of_few_rows_are_not_outvoted_by_those_of_many() -> None:
    X, y = blobs(6, rows=100)
    rows, truth = blobs(6, rows=100)
    shift = np.random.default_rng(3).normal(size=rows.shape) * 1.5
    rare = np.flatnonzero(y >= 3)
    kept = np.concatenate([np.flatnonzero(y < 3), rare[::20]])
    answers = model(width=300).fit(X[kept], y[kept]).predict_closed(rows + shift)
    right = answers == truth
    assert right[truth >= 3].mean() > right[truth < 3].mean() - 0.1


@pytest.mark.parametrize(
    ("labels", "message"), [(["a"] * 5, "integers"), ([-1] * 5, "unknown rows are called"), ([1] * 4, "inconsistent")]
)
def test_bad_labels_are_refused_and_change_nothing(labels: list[Any], message: str) -> None:
    X, y = blobs(3)
    classifier = model().fit(X, y)
    before = classifier.novelty(X)
    with pytest.raises(ValueError, match=message):
        classifier.partial_fit(X[:5], labels)
    assert classifier.novelty(X).tobytes() == before.tobytes()


def test_what_cannot_be_removed() -> None:
    X, y = blobs(3)
    with pytest.raises(ValueError, match="no class of the model"):
        model().fit(X, y).remove_class(7)
    with pytest.raises(ValueError, match="two classes"):
        model().fit(X[y < 2], y[y < 2]).remove_class(0)
    with pytest.raises(ValueError, match="keep_rows"):
        model(keep_rows=False).fit(X, y).remove_class(0)


def test_classifiers_that_cannot_learn_on_have_no_partial_fit() -> None:
    assert not hasattr(MSPClassifier(), "partial_fit")
    assert not isinstance(MSPClassifier(), IncrementalClassifier)


def test_unknown_digits_are_found_and_then_learnt() -> None:
    digits = load("digits")
    split = hold_out_classes(digits.X, np.asarray(digits.y), known=list(range(7)), test_size=0.4, seed=0)
    classifier = AnalyticClassifier(width=1000, calibration=0.3, random_state=0).fit(split.X_train, split.y_train)
    novelty = classifier.novelty(split.X_test)
    assert auroc(novelty[~split.unknown], novelty[split.unknown]) > 0.94
    known = ~split.unknown
    before = np.mean(classifier.predict_closed(split.X_test[known]) == split.y_test[known])
    new = np.flatnonzero(split.unknown)
    classifier.partial_fit(split.X_test[new[::2]], split.y_test[new[::2]])
    assert np.mean(classifier.predict_closed(split.X_test[new[1::2]]) == split.y_test[new[1::2]]) > 0.93
    assert np.mean(classifier.predict_closed(split.X_test[known]) == split.y_test[known]) > before - 0.02


def test_thresholds_by_class_follow_and_cross_validation_is_refused() -> None:
    X, y = blobs(4, rows=60)
    classifier = model(rule="calibrated", calibration=0.5, alpha=0.1, by_class="predicted").fit(X[y < 3], y[y < 3])
    classifier.partial_fit(X[y == 3], y[y == 3])
    assert classifier.predict(X[y == 3]).tolist().count(3) > 45
    crossed = model(rule="calibrated", calibration="cv").fit(X[y < 3], y[y < 3])
    for method in ("partial_fit", "remove_rows", "left_out_novelty", "fit_shard"):
        with pytest.raises(ValueError, match=f"{method} needs one model; fit with calibration as a share"):
            getattr(crossed, method)(X[:5], y[:5])
    with pytest.raises(ValueError, match="remove_class needs one model; fit with calibration as a share"):
        crossed.remove_class(0)
    with pytest.raises(ValueError, match="calibrate_again needs one model; fit with calibration as a share"):
        crossed.calibrate_again()
