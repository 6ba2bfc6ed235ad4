"""Every kind of model and of rows, and what is refused."""

from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from offmap import Calibrated, Guarded
from offmap.collaborative import ClosedFormDetector
from offmap.density import MahalanobisDetector, NearestNeighborDetector, VAEDetector
from offmap.explain import explain, top_reasons

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
STRANGE = np.array([[0.2, 9.0, -0.1]])


def test_a_calibrated_forest_and_a_plain_function() -> None:
    forest = Calibrated(IsolationForest(), random_state=0).fit(X)
    assert explain(forest, STRANGE, reference=X)[0].reasons(1)[0].part == "feature 1"
    wrapped = Calibrated(NearestNeighborDetector(calibration=0.2), random_state=0).fit(X)
    [found] = explain(wrapped, STRANGE, method="exact")
    assert found.exact
    assert found.contributions.sum() == pytest.approx(found.novelty)


def test_a_classifier_names_the_closest_class_and_what_speaks_against_it() -> None:
    rows = np.concatenate([X[:200], X[200:] + np.array([4, 0, 0])])
    labels = np.repeat(["left", "right"], 200)
    model = Guarded(
        LogisticRegression(),
        novelty_score=lambda classifier, given: np.abs(np.asarray(given)[:, 1]),
        random_state=0,
    ).fit(rows, labels)
    [found] = explain(model, [[4.2, 9.0, 0.1]], reference=rows)
    assert found.closest is not None
    assert found.closest.label == "right"
    assert found.closest.against is not None
    assert found.closest.against.argmax() == 1
    assert "Closest known class: right" in str(found)
    assert found.to_dict()["closest"]["against"][0]["part"] == "feature 1"


def test_a_row_is_compared_with_the_rows_of_its_own_entity() -> None:
    entities = np.repeat(["a", "b"], 200)
    rows = np.where((entities == "a")[:, None], X, X + np.array([0, 20, 0]))
    model = ClosedFormDetector(random_state=0).fit(rows, entities)
    given: dict[str, Any] = {"reference": rows, "reference_entities": entities}
    [found] = explain(model, [[0.0, 20.0, 0.0]], entities=["a"], **given)
    assert set(entities[found.neighbors]) == {"a"}
    assert found.profile is not None
    assert found.profile.entity == "a"
    assert found.profile.usual[1][1] < 5
    if found.novel:
        assert found.reasons(1)[0].part == "feature 1"
    assert "Entity a" in str(found)
    [alone] = explain(model, [[0.0, 20.0, 0.0]], entities=["a"], reference=rows[200:], reference_entities=["b"] * 200)
    assert alone.profile is not None
    assert alone.profile.rows == 0
    with pytest.raises(ValueError, match="entities must be given"):
        explain(model, STRANGE, reference=rows)
    with pytest.raises(ValueError, match="one id per reference row"):
        explain(model, STRANGE, entities=["a"], reference=rows, reference_entities=["a"])


def test_a_frame_of_numbers_and_categories_is_explained_by_its_own_columns() -> None:
    frame = pd.DataFrame({"amount": X[:, 0], "colour": RNG.choice(["red", "blue"], 400), "hour": X[:, 2]})
    encode = make_column_transformer(
        (StandardScaler(), ["amount", "hour"]), (OneHotEncoder(handle_unknown="ignore"), ["colour"])
    )
    model = NearestNeighborDetector(encoder=encode, random_state=0).fit(frame)
    strange = pd.DataFrame({"amount": [0.1, 9.0], "colour": ["green", "red"], "hour": [0.0, 0.0]}, index=["u", "v"])
    colour, amount = explain(model, strange, reference=frame)
    assert not colour.exact
    assert (colour.reasons(1)[0].part, colour.reasons(1)[0].value) == ("colour", "green")
    assert amount.reasons(1)[0].part == "amount"
    assert amount.counterfactual is not None
    assert amount.counterfactual.names == ("amount",)
    assert isinstance(top_reasons(model, strange, frame, 4)["reason_4"][0], str)


def test_without_reference_rows_the_remedy_is_named() -> None:
    model = VAEDetector(epochs=1, random_state=0).fit(X)
    with pytest.raises(
        ValueError, match=r"reference must be given: VAEDetector keeps no training rows.*reference=X_train"
    ):
        explain(model, STRANGE)
    with pytest.raises(ValueError, match="reference must hold normal rows"):
        explain(model, STRANGE, reference=X + 99)
    with pytest.raises(ValueError, match="at least one normal row"):
        explain(model, STRANGE, reference=X[:0])
    with pytest.raises(ValueError, match="reference must have the 3 columns of X; got 2"):
        explain(model, STRANGE, reference=X[:, :2])
    with pytest.raises(ValueError, match=r"method='exact' needs .* VAEDetector has none; take method='occlusion'"):
        explain(model, STRANGE, reference=X, method="exact")
    with pytest.raises(ValueError, match="feature_names must have one name for each of the 3"):
        explain(model, STRANGE, reference=X, feature_names=["a"])
    with pytest.raises(ValueError, match="entities must be left out"):
        explain(model, STRANGE, reference=X, entities=[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "shap"}, "method must be 'occlusion' or 'exact'; got 'shap'"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer at least 1; got 0"),
        ({"max_reference": 0}, "max_reference must be an integer at least 1; got 0"),
        ({"max_reference": -1}, "max_reference must be an integer at least 1; got -1"),
        ({"k": -1}, "k must be an integer at least 1; got -1"),
    ],
)
def test_an_argument_out_of_range_is_named(options: dict[str, Any], message: str) -> None:
    model = NearestNeighborDetector(random_state=0).fit(X)
    with pytest.raises(ValueError, match=message):
        top_reasons(model, STRANGE, **options)


def test_a_model_without_a_promise_is_sent_to_the_wrappers() -> None:
    with pytest.raises(ValueError, match="put the IsolationForest into Calibrated or Guarded first"):
        explain(cast(Any, IsolationForest(random_state=0).fit(X)), STRANGE, reference=X)
    with pytest.raises(NotFittedError):
        explain(NearestNeighborDetector(), STRANGE)


@pytest.mark.parametrize("shift", [7, 1e9], ids=["near zero", "beyond single precision"])
def test_rows_kept_by_the_model_are_those_it_was_given(shift: float) -> None:
    detector = NearestNeighborDetector(random_state=0).fit(X * 100 + shift)
    [found] = explain(detector, STRANGE * 100 + shift)
    for row in found.neighbor_rows:
        assert np.abs(X * 100 + shift - row).sum(axis=1).min() < 1e-3


def test_explanations_do_not_depend_on_the_rows_beside() -> None:
    model = VAEDetector(epochs=2, random_state=0).fit(X)
    rows = np.concatenate([STRANGE, 3 * X[:20]])
    together, [alone] = explain(model, rows, reference=X)[0], explain(model, STRANGE, reference=X)
    np.testing.assert_array_equal(together.contributions, alone.contributions)
    assert together.to_dict() == alone.to_dict()


@pytest.mark.parametrize("calibration", [0.3, "cv"])
def test_flat_images_of_a_wrapped_model_are_explained_by_places(calibration: Any) -> None:
    images = np.random.default_rng(0).random((200, 64)) / 9
    strange = images[:1].copy()
    strange[0, [0, 1, 8, 9]] = 1.0
    detector = NearestNeighborDetector(calibration=0.3, image_shape=(8, 8))
    model = Calibrated(detector, calibration=calibration, random_state=0).fit(images)
    [found] = explain(model, strange, reference=images[1:])
    assert found.kind == "image"
    assert found.reasons(1)[0].part == "rows 0–1, columns 0–1"


@pytest.mark.parametrize("detector", [MahalanobisDetector, NearestNeighborDetector])
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_novelty_of_folds_has_no_exact_shares(detector: Any, wrapped: bool) -> None:
    folds = detector(calibration="cv", random_state=0)
    model = (Calibrated(folds, random_state=0) if wrapped else folds).fit(X)
    assert explain(model, STRANGE, reference=X)[0].reasons(1)[0].part == "feature 1"
    with pytest.raises(ValueError, match=r"method='exact' needs .* folds \(calibration='cv'\).* method='occlusion'"):
        explain(model, STRANGE, reference=X, method="exact")
