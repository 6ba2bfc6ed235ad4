"""What is learnt piece by piece is what would be learnt at once."""

import copy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from offmap.calibration import CalibrationWarning
from offmap.collaborative import (
    ClosedFormDetector,
    EntityContrastiveDetector,
    EntityGaussianDetector,
    RatioDetector,
    SeparateRatioDetector,
)
from tests.collaborative.problems import ring


@pytest.mark.parametrize(
    "detector",
    [
        RatioDetector(head="two_tower", epochs=10),
        RatioDetector(head="concat", epochs=10),
        EntityGaussianDetector(epochs=10, lr=3e-3),
    ],
    ids=["two towers", "concat", "gaussian"],
)
def test_rows_one_by_one_do_not_draw_a_known_entity_to_the_others(detector: Any) -> None:
    X, entities = ring(8, 60)
    detector.set_params(random_state=0, calibration=0.0).fit(X, entities)
    more, fresh = (ring(8, 30, seed=seed)[0][-30:] for seed in (1, 2))

    def familiar(model: Any) -> float:
        return -float(model.novelty(fresh, [7] * 30).mean())

    before, others = familiar(detector), float(detector.familiarity(fresh, np.arange(7)).mean())
    for row in more[:10]:
        detector.partial_fit(row[None], [7])
    assert before - familiar(detector) < 0.1 * (before - others)
    assert detector.entity_counts_[-1] == 70


def test_a_new_entity_of_two_towers_ends_where_one_piece_would() -> None:
    X, entities = ring(8, 60)
    detector = RatioDetector(head="two_tower", epochs=10, calibration=0.0, random_state=0).fit(X, entities)
    own, fresh = (ring(2, 40, seed=seed)[0][:40] for seed in (1, 2))
    piecewise = copy.deepcopy(detector)
    for row in own:
        piecewise.partial_fit(row[None], [99])
    found, expected = (model.novelty(fresh, [99] * 40).mean() for model in (piecewise, detector.add_entity(99, own)))
    assert expected < -0.5
    assert found == pytest.approx(expected, rel=0.1)


def test_a_label_that_occurred_stays() -> None:
    X, entities = ring(4, 10)
    labels = np.tile([0, 0, 0, 0, 1, 1, 1, 1, 1, 2], 4)
    parameters: dict[str, Any] = {"embedding": "label", "tune_embeddings": False, "epochs": 1, "random_state": 0}
    detector = RatioDetector(head="concat", calibration=0.0, **parameters).fit(X, entities, labels=labels)
    detector.add_entity(9, X[:4], labels=[0, 0, 0, 1])
    detector.partial_fit(X[:3], [9] * 3, labels=[0, 0, 2])
    np.testing.assert_array_equal(detector.entity_embeddings_[-1], [1, 1, 1])


def test_what_was_trained_of_labels_that_do_not_occur_stays() -> None:
    X, entities = ring(4, 30)
    detector = RatioDetector(
        head="concat", embedding="label", embedding_lr_factor=10.0, epochs=20, calibration=0.0, random_state=0
    )
    detector.fit(X, entities, labels=entities)
    before = detector.entity_embeddings_.copy()
    assert (before < 0).any()
    detector.partial_fit(X, entities, labels=entities)
    absent = ~np.eye(4, dtype=bool)
    np.testing.assert_array_equal(detector.entity_embeddings_[absent], before[absent])


def levels_after(pieces: int, seed: int) -> NDArray[Any]:
    X, entities = ring(4, 60)
    fresh = ring(4, 60, seed=1)[0]
    detector = ClosedFormDetector(features="fourier", embedding_size=16, random_state=seed).fit(X, entities)
    for start in range(pieces):
        detector.partial_fit(fresh[start::pieces], entities[start::pieces])
    return detector.entities_.column("level").numpy().copy()


@pytest.mark.filterwarnings("ignore:entities have a tenth more rows")
def test_levels_of_a_stream_are_those_of_one_piece() -> None:
    # Which rows are held out decides up to 0.04 of a single seed.
    apart = [np.abs(levels_after(1, seed) - levels_after(6, seed)).max() for seed in range(6)]
    assert np.mean(apart) < 0.03


def test_a_stream_that_outgrows_the_calibration_warns_once_per_model() -> None:
    X, entities = ring(4, 60)
    detector = ClosedFormDetector(features="fourier", embedding_size=16, random_state=0).fit(X, entities)
    detector.partial_fit(X[:5], entities[:5]).add_entity(9, X[:5]).partial_fit(X[:5], [9] * 5)
    with pytest.warns(CalibrationWarning, match=r"a tenth more rows .* call recalibrate"):
        detector.partial_fit(X[:5], entities[:5])
    detector.partial_fit(X, entities)
    renewed = detector.recalibrate(X, entities).partial_fit(X[:5], entities[:5])
    with pytest.warns(CalibrationWarning, match="a tenth more rows"):
        renewed.partial_fit(X, entities)


def test_growth_follows_removed_entities_and_there_is_none_without_a_threshold() -> None:
    X, entities = ring(4, 60)
    detector = ClosedFormDetector(features="fourier", embedding_size=16, random_state=0).fit(X, entities)
    detector.remove_entities([0, 2]).partial_fit(X[:90], [9] * 90)
    with pytest.warns(CalibrationWarning, match="a tenth more rows"):
        detector.partial_fit(X[:20], [3] * 20)
    ClosedFormDetector(features="fourier", calibration=0.0, random_state=0).fit(X, entities).partial_fit(X, entities)


def test_a_stream_takes_all_places_of_a_contrastive_entity_in_time() -> None:
    X, entities = ring(4, 30)
    detector = EntityContrastiveDetector(epochs=1, calibration=0.0, random_state=0).fit(X, entities)
    first = detector.entity_embeddings_[0].reshape(16, -1).copy()
    later = ring(4, 75, seed=1)[0]
    for row in later:
        detector.partial_fit(row[None], [0])
    stayed = (detector.entity_embeddings_[0].reshape(16, -1) == first).all(axis=1).sum()
    # Each place keeps one of the first 30 of 330 with probability 1/11; all sixteen together 1.5 on average.
    assert stayed <= 6


def test_an_interrupted_entity_of_its_own_network_leaves_scores_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    X, entities = ring(4, 30)
    detector = SeparateRatioDetector(dropout=0.5, epochs=1, calibration=0.0, random_state=0).fit(X, entities)
    before = detector.novelty(X, entities)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("offmap.collaborative.separate.train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        detector.add_entity(9, X[:20])
    assert (detector.novelty(X, entities) == before).all()
