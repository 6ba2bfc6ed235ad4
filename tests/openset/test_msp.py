"""The baseline: softmax probabilities of a closed-set classifier."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from offmap.metrics import auroc
from offmap.openset import MSPClassifier

Array = NDArray[Any]


@pytest.fixture(scope="module")
def digits() -> tuple[Array, Array]:
    bunch = load_digits()
    return bunch.data.astype(np.float64), bunch.target


@pytest.fixture(scope="module")
def fitted(digits: tuple[Array, Array]) -> MSPClassifier:
    X, y = digits
    return MSPClassifier(random_state=0).fit(X[:1200][y[:1200] < 7], y[:1200][y[:1200] < 7])


def test_probabilities_are_the_softmax_of_a_perceptron(fitted: MSPClassifier, digits: tuple[Array, Array]) -> None:
    X = digits[0][1200:1300]
    weights = {name: tensor.double().numpy() for name, tensor in fitted.network_.state_dict().items()}
    Z = (X - weights["standardise.mean"]) / weights["standardise.scale"]
    hidden = np.maximum(Z @ weights["body.0.0.weight"].T + weights["body.0.0.bias"], 0)
    logits = hidden @ weights["head.weight"].T + weights["head.bias"]
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(X), proba, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(fitted.novelty(X), 1 - proba.max(axis=1), rtol=1e-3, atol=1e-6)
    assert (fitted.predict_closed(X) == fitted.classes_[proba.argmax(axis=1)]).all()


def test_known_digits_are_named_and_many_unknown_ones_rejected(
    fitted: MSPClassifier, digits: tuple[Array, Array]
) -> None:
    X, y = digits[0][1200:], digits[1][1200:]
    known = y < 7
    assert np.mean(fitted.predict_closed(X[known]) == y[known]) > 0.93
    assert auroc(fitted.novelty(X[known]), fitted.novelty(X[~known])) > 0.85
    answers = fitted.predict(X)
    assert np.mean(answers[~known] == fitted.unknown_label_) > 2 * np.mean(answers[known] == fitted.unknown_label_)


def test_its_own_rule_rejects_what_no_class_has_half_the_probability_of(digits: tuple[Array, Array]) -> None:
    X, y = digits
    model = MSPClassifier(rule="own", epochs=6, random_state=0).fit(X[:400], y[:400])
    proba, answers = model.predict_proba(X), model.predict(X)
    assert model.threshold_ == 0.5
    assert 0.05 < np.mean(answers == -1) < 0.95
    clear = np.abs(proba.max(axis=1) - 0.5) > 1e-6
    assert ((answers == -1) == (proba.max(axis=1) < 0.5))[clear].all()


def test_without_hidden_layers_it_is_linear(digits: tuple[Array, Array]) -> None:
    X, y = digits
    model = MSPClassifier(hidden=(), epochs=20, random_state=0).fit(X[:1200], y[:1200])
    logits = model.network_(torch.from_numpy(X[:3].astype(np.float32)))
    middle = model.network_(torch.from_numpy(X[:2].mean(axis=0, keepdims=True).astype(np.float32)))
    torch.testing.assert_close(middle[0], logits[:2].mean(dim=0), rtol=1e-3, atol=1e-4)
    assert np.mean(model.predict_closed(X[1200:]) == y[1200:]) > 0.85


def test_the_scale_of_a_feature_does_not_matter(digits: tuple[Array, Array]) -> None:
    X, y = digits[0] * np.logspace(-4, 4, 64), digits[1]
    model = MSPClassifier(epochs=10, random_state=0).fit(X[:1200], y[:1200])
    assert np.mean(model.predict_closed(X[1200:]) == y[1200:]) > 0.9


@pytest.fixture(scope="module")
def with_negatives(digits: tuple[Array, Array]) -> MSPClassifier:
    X, y = digits
    return MSPClassifier(negative_weight=1.0, random_state=0).fit(X[:1200][y[:1200] < 7], y[:1200][y[:1200] < 7])


def test_the_class_of_negatives_takes_probability_but_is_never_predicted(
    with_negatives: MSPClassifier, digits: tuple[Array, Array]
) -> None:
    X = digits[0][1200:]
    with torch.no_grad():
        p = with_negatives.network_(torch.from_numpy(X.astype(np.float32))).double().softmax(dim=1).numpy()
    known = p[:, :7]
    assert p.shape[1] == 8
    assert (p.argmax(axis=1) == 7).any()
    np.testing.assert_allclose(with_negatives.novelty(X), 1 - known.max(axis=1), atol=1e-5)
    np.testing.assert_allclose(with_negatives.predict_proba(X), known / known.sum(axis=1, keepdims=True), atol=1e-4)


def test_negatives_make_rows_around_the_classes_novel(
    fitted: MSPClassifier, with_negatives: MSPClassifier, digits: tuple[Array, Array]
) -> None:
    X, y = digits[0][:1200], digits[1][:1200]
    rng = np.random.default_rng(0)
    around = X[y < 7] + 2 * X.std(axis=0) * rng.normal(size=X[y < 7].shape)
    assert with_negatives.novelty(around).mean() > 0.9 > 0.5 > fitted.novelty(around).mean()
