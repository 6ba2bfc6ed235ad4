"""ANS learns new classes: new heads only, and labels that are sums over rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import offmap
from offmap.data import hold_out_classes, load
from offmap.loop import OpenWorld
from offmap.openset import ANSClassifier
from offmap.openset.ans_learning import AnalyticLabels
from offmap.openset.head_batches import NO_HEAD, HeadBatches

Array = NDArray[Any]


def blobs(classes: int, rows: int = 30, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    y = np.tile(np.arange(classes), rows)
    return np.random.default_rng(9).normal(size=(classes, 6))[y] * 4 + rng.normal(size=(len(y), 6)), y


def model(**parameters: Any) -> ANSClassifier:
    settings: dict[str, Any] = {
        **{"closed_set": "analytic", "closed_set_width": 60, "head_hidden": (16,), "steps": 60, "radius_factor": 1.6},
        **{"space": "raw", "calibration": 0.4, "alpha": 0.1, "random_state": 0},
    }
    return ANSClassifier(**settings | parameters)


def parts(X: Array, y: Array, labels: list[int]) -> tuple[Array, Array]:
    chosen = np.isin(y, labels)
    return X[chosen], y[chosen]


def head(classifier: ANSClassifier, label: int) -> list[bytes]:
    place = classifier.classes_.tolist().index(label)
    return [tensor[place].numpy().tobytes() for tensor in classifier.network_.heads.state_dict().values()]


@pytest.mark.parametrize("space", ["raw", "adapted"])
def test_heads_of_known_classes_stay_byte_for_byte(space: str) -> None:
    X, y = blobs(5)
    classifier = model(space=space).fit(*parts(X, y, [0, 2, 4]))
    before = {label: head(classifier, label) for label in (0, 2, 4)}
    classifier.partial_fit(*parts(X, y, [1, 3]))
    assert classifier.classes_.tolist() == [0, 1, 2, 3, 4]
    assert {label: head(classifier, label) for label in (0, 2, 4)} == before
    assert head(classifier, 1) != head(classifier, 3)
    classifier.partial_fit(*parts(X, y, [0, 1]))
    assert {label: head(classifier, label) for label in (0, 2, 4)} == before


def test_heads_are_trained_anew_if_asked() -> None:
    X, y = blobs(4)
    classifier = model(renew_heads=True).fit(*parts(X, y, [0, 1]))
    before = head(classifier, 0)
    classifier.partial_fit(*parts(X, y, [2, 3]))
    assert head(classifier, 0) != before
    assert np.mean(classifier.predict_closed(X) == y) > 0.97


def test_labels_learnt_one_after_another_equal_labels_learnt_together_to_a_millionth() -> None:
    X, y = blobs(6)
    settings: dict[str, Any] = {"rule": "own", "calibration": 0, "steps": 5}
    together = model(**settings).fit(*parts(X, y, [0, 4])).partial_fit(*parts(X, y, [1, 2, 3, 5]))
    apart = model(**settings).fit(*parts(X, y, [0, 4]))
    for label in (5, 2, 1, 3):
        apart.partial_fit(*parts(X, y, [label]))
    one, other = together.network_.classifier, apart.network_.classifier
    assert isinstance(one, AnalyticLabels)
    assert isinstance(other, AnalyticLabels)
    for name in ("gram", "sums", "counts", "weights"):
        expected, found = getattr(one.ridge, name).numpy(), getattr(other.ridge, name).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(apart.predict_proba(X), together.predict_proba(X), atol=1e-5)


def test_new_digits_are_learnt_and_the_known_ones_kept() -> None:
    digits = load("digits")
    split = hold_out_classes(digits.X, np.asarray(digits.y), known=list(range(7)), test_size=0.5, seed=0)
    new = np.flatnonzero(split.unknown)
    lesson, test = new[::2], np.setdiff1d(np.arange(len(split.y_test)), new[::2])
    classifier = model(closed_set_width=500, head_hidden=(64,), steps=150, space="adapted", alpha=0.05)
    classifier.fit(split.X_train, split.y_train)
    known, fresh = test[~split.unknown[test]], test[split.unknown[test]]
    before = np.mean(classifier.predict(split.X_test[known]) == split.y_test[known])
    assert np.mean(classifier.predict(split.X_test[fresh]) == -1) > 0.5
    classifier.partial_fit(split.X_test[lesson], split.y_test[lesson])
    after = classifier.predict(split.X_test[test]) == split.y_test[test]
    assert np.mean(after[~split.unknown[test]]) > before - 0.03
    assert np.mean(after[split.unknown[test]]) > 0.85


def test_logistic_labels_are_fitted_again_to_the_kept_rows() -> None:
    X, y = blobs(4)
    classifier = model(closed_set="logistic").fit(*parts(X, y, [0, 3]))
    before = head(classifier, 3)
    classifier.partial_fit(*parts(X, y, [1, 2])).partial_fit(*parts(X, y, [1]))
    assert head(classifier, 3) == before
    assert np.mean(classifier.predict_closed(blobs(4, seed=3)[0]) == blobs(4, seed=3)[1]) > 0.97


def test_a_saved_model_learns_on_as_the_one_in_memory(tmp_path: Path) -> None:
    X, y = blobs(5)
    classifier = model().fit(*parts(X, y, [0, 1, 3])).partial_fit(*parts(X, y, [2]))
    classifier.save(tmp_path / "model.safetensors")
    again = offmap.load(tmp_path / "model.safetensors")
    assert again.novelty(X).tobytes() == classifier.novelty(X).tobytes()
    for one in (classifier, again):
        one.partial_fit(*parts(X, y, [4]))
    assert again.novelty(X).tobytes() == classifier.novelty(X).tobytes()


def test_at_most_a_hundred_rows_per_class_are_kept() -> None:
    X, y = blobs(3, rows=200)
    classifier = model(calibration=0.1).fit(*parts(X, y, [0, 1])).partial_fit(*parts(X, y, [2]))
    assert np.unique(classifier.row_labels_, return_counts=True)[1].tolist() == [100, 100, 100]
    assert {row.tobytes() for row in classifier.rows_} <= {row.tobytes() for row in X.astype(np.float32)}


def test_rows_without_a_head_are_negatives_of_every_head() -> None:
    y = torch.tensor([NO_HEAD, 1, 0, NO_HEAD, 1, 0, 1])
    seen: dict[int, set[int]] = {0: set(), 1: set()}
    for own, rest in HeadBatches(y, 2, n_own=3, n_rest=4, steps=30):
        for code in (0, 1):
            assert (y[own[code]] == code).all()
            assert (y[rest[code]] != code).all()
            seen[code] |= set(rest[code].tolist())
    assert seen == {0: {0, 1, 3, 4, 6}, 1: {0, 2, 3, 5}}


def test_a_world_chooses_labels_that_can_learn(tmp_path: Path) -> None:
    X, y = blobs(5, rows=40)
    classifier = model(closed_set="logistic", space="adapted")
    with OpenWorld.create(tmp_path / "w", classifier=classifier, alpha=0.1, min_group=4) as world:
        world.teach(*parts(X, y, [0, 1, 2]))
        fresh, truth = blobs(5, rows=15, seed=1)
        world.observe(fresh, ids=range(len(fresh)))
        for group in world.groups():
            world.name(group.id, int(np.bincount(truth[np.array(group.rows, int)]).argmax()))
        world.learn()
        learnt = world.classifier.classes_.tolist()
        later, labels = parts(*blobs(5, rows=15, seed=2), learnt)
        assert set(learnt) > {0, 1, 2}
        assert np.mean(world.classifier.predict_closed(later) == labels) > 0.9
