"""What every collaborative detector promises, over every kind of every one."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import offmap
from offmap.calibration import CalibrationWarning
from offmap.collaborative import (
    ClosedFormDetector,
    EntityFlowDetector,
    RatioDetector,
    SeparateRatioDetector,
)
from offmap.collaborative.ids import check_ids
from offmap.collaborative.levels import standardised
from offmap.collaborative.scoring import all_features
from offmap.parameters import hints
from tests.collaborative.problems import kinds, ring, small
from tests.estimators import ENTITY_DETECTORS, brief

KINDS = kinds()
NAMES = [f"{place}-{type(detector).__name__}" for place, detector in enumerate(KINDS)]


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    X, entities = ring()
    return {name: deepcopy(detector).fit(X, entities) for name, detector in zip(NAMES, KINDS, strict=True)}


@pytest.mark.parametrize("name", NAMES)
def test_familiarity_is_minus_the_raw_novelty_of_every_pair(name: str, fitted: dict[str, Any]) -> None:
    X, _ = ring(seed=1)
    detector = fitted[name]
    matrix = detector.familiarity(X)
    rows, columns = np.divmod(np.arange(matrix.size), matrix.shape[1])
    novelty = detector.raw_novelty(X, detector.entity_ids_[columns], rows=rows)
    np.testing.assert_allclose(-matrix.ravel(), novelty, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(detector.familiarity(X, [3, 1]), matrix[:, [3, 1]], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_pair_gets_the_same_bytes_in_any_company(name: str, fitted: dict[str, Any]) -> None:
    X, entities = ring(seed=2)
    together = fitted[name].novelty(X, entities)
    alone = np.concatenate([fitted[name].novelty(X[i : i + 1], entities[i : i + 1]) for i in range(0, 180, 30)])
    assert (alone == together[::30]).all()


@pytest.mark.parametrize("width", [5, 17])
@pytest.mark.parametrize("cls", ENTITY_DETECTORS, ids=lambda cls: cls.__name__)
def test_a_pair_gets_the_same_bytes_where_rows_start_at_odd_places_in_memory(cls: type, width: int) -> None:
    rng = np.random.default_rng(0)
    entities = rng.integers(6, size=600)
    X = rng.normal(size=(600, width)) + 3 * rng.normal(size=(6, width))[entities]
    narrow = {"hidden": (7,)} if "hidden" in hints(cls) else {}
    detector = brief(cls, **narrow).fit(X, entities)
    whole, order = detector.novelty(X, entities), rng.permutation(600)
    assert detector.novelty(X[order], entities[order]).tobytes() == whole[order].tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_model_and_leaves_the_callers_random_state(
    name: str, fitted: dict[str, Any]
) -> None:
    X, entities = ring()
    before, numpy_before = torch.get_rng_state(), str(np.random.get_state())
    again = deepcopy(KINDS[NAMES.index(name)]).fit(X, entities)
    again.add_entity(99, X[:5])
    assert (torch.get_rng_state() == before).all()
    assert str(np.random.get_state()) == numpy_before
    assert (again.novelty(X, entities) == fitted[name].novelty(X, entities)).all()


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_loaded_it_scores_and_learns_as_before(name: str, fitted: dict[str, Any], tmp_path: Path) -> None:
    X, entities = ring(seed=3)
    fitted[name].save(tmp_path / "model.safetensors")
    loaded = offmap.load(tmp_path / "model.safetensors")
    assert (loaded.novelty(X, entities) == fitted[name].novelty(X, entities)).all()
    assert (loaded.p_value(X, entities) == fitted[name].p_value(X, entities)).all()
    one, other = deepcopy(fitted[name]).add_entity(77, X[:9]), loaded.add_entity(77, X[:9])
    assert (one.familiarity(X, [77]) == other.familiarity(X, [77])).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_new_entity_is_found_by_its_id_and_others_keep_their_scores(name: str, fitted: dict[str, Any]) -> None:
    X, entities = ring()
    detector = deepcopy(fitted[name])
    before = detector.novelty(X, entities)
    detector.add_entity(-5, X[entities == 2])
    assert detector.entity_ids_.tolist() == [*range(6), -5]
    assert detector.entity_counts_[-1] == 30
    assert (detector.novelty(X, entities) == before).all()
    assert np.isfinite(detector.novelty(X, np.full(len(X), -5))).all()
    with pytest.raises(ValueError, match="entity -5 is known already"):
        detector.add_entity(-5, X[:3])


@pytest.mark.parametrize("name", NAMES)
def test_an_entity_of_one_row_is_learnt(name: str) -> None:
    X, entities = ring()
    detector = deepcopy(KINDS[NAMES.index(name)]).fit(np.append(X, X[:1], axis=0), np.append(entities, 6))
    assert detector.entity_counts_[6] == 1
    detector.add_entity(7, X[:1])
    assert np.isfinite(detector.familiarity(X)).all()


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_is_named(name: str, fitted: dict[str, Any]) -> None:
    X, entities = ring()
    detector = fitted[name]
    for arguments, message in (
        ((X, np.full(len(X), 50)), "entities holds 50, which was never fitted"),
        ((X, []), "entities must hold at least one id"),
        ((X, entities[:-1]), "entities must have one id for each of the 180 rows"),
        ((np.full_like(X, np.nan), entities), "Input X contains NaN"),
        ((X, entities.astype(str)), "entities must be integers, as the fitted entities are; got strings"),
        ((X, entities + 0.5), "entities must be all integers or all strings; got float64"),
        ((X[:, :1], entities), "X has 1 features"),
    ):
        with pytest.raises(ValueError, match=message):
            detector.novelty(*arguments)
    unfitted = deepcopy(KINDS[NAMES.index(name)])
    with pytest.raises(ValueError, match="at least 2 entities"):
        unfitted.fit(X, np.zeros(len(X), dtype=int))
    with pytest.raises(ValueError, match="a mix of int and str"):
        unfitted.fit(X, [0, "one", *range(178)])


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_are_shared_are_given_once(name: str) -> None:
    X, _ = ring(3, 20)
    rows = np.arange(120) % 60
    entities = np.repeat([0, 1, 2, 3], 30)
    detector = KINDS[NAMES.index(name)]
    shared = deepcopy(detector).set_params(calibration=0.0).fit(X, entities, rows=rows)
    assert shared.entity_counts_.tolist() == [30] * 4
    pairs = shared.novelty(X, entities, rows=rows)
    np.testing.assert_allclose(pairs, shared.novelty(X[rows], entities), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="rows must be from 0 to 59"):
        shared.novelty(X, entities, rows=rows + 1)


def test_false_alarms_are_kept_over_all_entities_and_spread_over_them() -> None:
    """Entities differ in breadth: one threshold on plain novelty would give the broad ones nearly all the alarms."""
    rng = np.random.default_rng(0)
    entities = np.repeat(np.arange(20), 400)
    breadth = np.where(entities < 10, 0.3, 2.0)[:, None]
    X = rng.normal(size=(len(entities), 2)) * breadth + 3 * np.stack([np.cos(entities), np.sin(entities)], axis=1)
    train = np.arange(len(entities)) % 2 == 0
    detector = ClosedFormDetector(features="fourier", alpha=0.05, calibration=0.3, random_state=0)
    detector.fit(X[train], entities[train])
    alarm = detector.predict(X[~train], entities[~train]) == -1
    assert 0.03 < alarm.mean() < 0.07
    assert ((detector.p_value(X[~train], entities[~train]) <= 0.05) == alarm).all()
    novelty, broad = detector.raw_novelty(X[~train], entities[~train]), entities[~train] >= 10
    plain = novelty > np.quantile(novelty, 0.95)
    assert alarm[broad].mean() - alarm[~broad].mean() < 0.7 * (plain[broad].mean() - plain[~broad].mean())


def test_values_that_no_float32_holds_are_not_learnt() -> None:
    X, entities = ring(3, 10)
    detector = ClosedFormDetector(features="fourier", calibration=0.0, random_state=0).fit(X, entities)
    with pytest.raises(ValueError, match="X holds values beyond the range of float32"):
        detector.partial_fit([[1e39, 0.0]], [0])
    with pytest.raises(ValueError, match="X holds values beyond the range of float32"):
        detector.add_entity(7, [[1e39, 0.0]])
    assert np.isposinf(detector.novelty([[1e39, 0.0]], [0])).all()
    assert np.isfinite(detector.novelty(X, entities)).all()


def test_rows_that_are_all_alike_have_finite_scores() -> None:
    detector = ClosedFormDetector(features="pca", calibration=0.0, random_state=0).fit(np.ones((8, 3)), [0, 1] * 4)
    assert np.isfinite(detector.novelty(np.ones((2, 3)), [0, 1])).all()


def test_networks_of_single_entities_score_without_dropout_and_have_no_angle() -> None:
    X, entities = ring(3, 20)
    detector = SeparateRatioDetector(dropout=0.5, epochs=2, calibration=0.0, random_state=0).fit(X, entities)
    np.testing.assert_array_equal(detector.novelty(X, entities), detector.novelty(X, entities))
    with pytest.raises(ValueError, match="similar_entities needs embeddings"):
        detector.similar_entities(0)


def test_networks_that_cannot_be_are_named() -> None:
    X, entities = ring(3, 10)
    with pytest.raises(ValueError, match="hidden must hold at least one layer for head='concat'"):
        RatioDetector(head="concat", hidden=()).fit(X, entities)
    with pytest.raises(ValueError, match="X must have at least 2 features for an autoregressive flow; got 1"):
        EntityFlowDetector().fit(X[:, :1], entities)


def test_without_calibration_there_are_raw_scores_but_nothing_is_promised() -> None:
    X, entities = ring()
    detector = ClosedFormDetector(features="pca", calibration=0.0, random_state=0).fit(X, entities)
    assert (detector.novelty(X, entities) == detector.raw_novelty(X, entities)).all()
    assert (detector.score_samples(X, entities) == -detector.raw_novelty(X, entities)).all()
    assert detector.promised_rate is None
    for asked in ("assess", "p_value", "predict", "decision_function"):
        with pytest.raises(ValueError, match=f"{asked} needs held-out rows; fit with calibration above 0"):
            getattr(detector, asked)(X, entities)


def test_entities_of_one_row_each_leave_no_threshold_and_a_warning_says_so() -> None:
    X, entities = ring()
    with pytest.warns(CalibrationWarning, match="no entity has 2 rows, so none is held out"):
        detector = small(RatioDetector).fit(X[::30], entities[::30])
    assert detector.threshold_ == np.inf
    assert np.isfinite(detector.novelty(X, entities)).all()
    with pytest.raises(ValueError, match="entities of 2 rows or more"):
        detector.predict(X, entities)


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_flagged_exactly_when_its_novelty_is_above_the_threshold(name: str, fitted: dict[str, Any]) -> None:
    X, entities = ring(seed=4)
    detector, far = fitted[name], np.concatenate([X, 4 * X])
    pairs = far, np.concatenate([entities, entities])
    flagged = detector.predict(*pairs) == -1
    assert flagged.any()
    assert not flagged.all()
    np.testing.assert_array_equal(detector.novelty(*pairs) > detector.threshold_, flagged)
    np.testing.assert_array_equal(detector.decision_function(*pairs) < 0, flagged)
    np.testing.assert_array_equal(detector.score_samples(*pairs), -detector.novelty(*pairs))
    np.testing.assert_array_equal(detector.p_value(*pairs) <= detector.promised_rate, flagged)
    verdict = detector.assess(*pairs)
    np.testing.assert_array_equal(verdict.novel, flagged)
    np.testing.assert_array_equal(verdict.novelty, detector.novelty(*pairs))
    np.testing.assert_array_equal(verdict.p_value, detector.p_value(*pairs))
    np.testing.assert_array_equal(verdict.entity, pairs[1])


@pytest.mark.parametrize("name", NAMES)
def test_novelty_ranks_the_rows_of_an_entity_as_the_raw_score_does(name: str, fitted: dict[str, Any]) -> None:
    X, _ = ring(seed=5)
    one = np.full(len(X), 3)
    novelty, raw = fitted[name].novelty(X, one), fitted[name].raw_novelty(X, one)
    assert (np.diff(novelty[np.argsort(raw, kind="stable")]) >= 0).all()


def test_an_assessment_scores_every_row_once(fitted: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    X, entities = ring(seed=4)
    detector, scored = fitted[NAMES[0]], []
    features = type(detector.features_).forward

    def counting(part: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
        scored.append(len(rows))
        return features(part, rows)

    monkeypatch.setattr(type(detector.features_), "forward", counting)
    detector.novelty(X, entities)
    once = len(scored)
    detector.assess(X, entities)
    assert len(scored) == 2 * once


def test_fit_predict_is_fit_and_predict() -> None:
    X, entities = ring()
    rows = np.arange(len(X))[::-1]
    detector = ClosedFormDetector(features="pca", calibration=0.2, random_state=0)
    found = detector.fit_predict(X, entities, rows=rows)
    np.testing.assert_array_equal(found, detector.predict(X, entities, rows=rows))


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_computes_the_features_of_a_training_row_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of rows that embeddings are found with, and the held-out rows, come on top."""
    X, entities = ring(4, 400)
    computed = []

    def counting(features: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
        computed.append(len(rows))
        return all_features(features, rows)

    for module in ("closed_form_parts", "contrastive", "learning", "ratio", "separate_detector", "separate_gaussian"):
        monkeypatch.setattr(f"offmap.collaborative.{module}.all_features", counting)
    deepcopy(KINDS[NAMES.index(name)]).set_params(calibration=0.1).fit(X, entities)
    assert sum(count > 512 for count in computed) <= 1


def test_few_rows_for_calibration_warn() -> None:
    X, entities = ring(3, 10)
    with pytest.warns(CalibrationWarning):
        ClosedFormDetector(features="pca", random_state=0).fit(X, entities)


def test_images_go_through_convolutions() -> None:
    from offmap.collaborative import RatioDetector

    rng = np.random.default_rng(0)
    entities = np.repeat(np.arange(4), 20)
    images = rng.integers(60, size=(80, 20, 20), dtype=np.uint8)
    images[np.arange(80), 4 * entities] += 150
    detector = RatioDetector(head="two_tower", conv_channels=2, hidden=(), epochs=20, patience=None)
    detector.set_params(random_state=0, calibration=0.0).fit(images, entities)
    matrix = detector.familiarity(images)
    assert np.mean(matrix.argmax(axis=1) == entities) > 0.7
    with pytest.raises(ValueError, match="needs images"):
        RatioDetector(network="conv").fit(images.reshape(80, -1) / 255, entities)


def test_novelty_is_standardised_by_the_level_and_the_count_of_the_entity() -> None:
    X, entities = ring()
    uneven = np.concatenate([np.arange(30), np.arange(30, 36), np.arange(60, 180)])
    detector = ClosedFormDetector(features="pca", calibration=0.2, random_state=0).fit(X[uneven], entities[uneven])
    pairs, table = (X[:40], entities[:40]), detector.entities_
    at = torch.from_numpy(detector._places(check_ids(pairs[1])))
    expected = standardised(
        torch.from_numpy(detector.raw_novelty(*pairs)),
        table.column("level")[at],
        torch.from_numpy(detector.entity_counts_)[at].float(),
        torch.tensor(detector.common_level_),
    )
    assert len(np.unique(detector.entity_counts_[:2])) == 2
    np.testing.assert_allclose(detector.novelty(*pairs), expected.numpy(), rtol=1e-6)
