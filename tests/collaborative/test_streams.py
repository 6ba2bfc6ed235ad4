"""What is learnt piece by piece is what would be learnt at once."""

import copy
from typing import Any

import numpy as np
import pytest

from offmap.collaborative import ClosedFormDetector, ContrastiveDetector, GaussianDetector, RatioDetector
from tests.collaborative.problems import ring


@pytest.mark.parametrize(
    "detector",
    [RatioDetector(head="two_tower", epochs=10), RatioDetector(epochs=10), GaussianDetector(epochs=10, lr=3e-3)],
    ids=["two towers", "concat", "gaussian"],
)
def test_exposures_one_by_one_do_not_draw_a_known_task_to_the_others(detector: Any) -> None:
    X, tasks = ring(8, 60)
    detector.set_params(random_state=0, calibration=0.0).fit(X, tasks)
    more, fresh = (ring(8, 30, seed=seed)[0][-30:] for seed in (1, 2))

    def familiar(model: Any) -> float:
        return -float(model.novelty(fresh, [7] * 30).mean())

    before, others = familiar(detector), float(detector.familiarity(fresh, np.arange(7)).mean())
    for row in more[:10]:
        detector.partial_fit(row[None], [7])
    assert before - familiar(detector) < 0.1 * (before - others)
    assert detector.task_counts_[-1] == 70


def test_a_new_task_of_two_towers_ends_where_one_piece_would() -> None:
    X, tasks = ring(8, 60)
    detector = RatioDetector(head="two_tower", epochs=10, calibration=0.0, random_state=0).fit(X, tasks)
    own, fresh = (ring(2, 40, seed=seed)[0][:40] for seed in (1, 2))
    piecewise = copy.deepcopy(detector)
    for row in own:
        piecewise.partial_fit(row[None], [99])
    found, expected = (model.novelty(fresh, [99] * 40).mean() for model in (piecewise, detector.add_task(99, own)))
    assert expected < -0.5
    assert found == pytest.approx(expected, rel=0.1)


def test_a_label_that_occurred_stays() -> None:
    X, tasks = ring(4, 10)
    labels = np.tile([0, 0, 0, 0, 1, 1, 1, 1, 1, 2], 4)
    parameters: dict[str, Any] = {"embedding": "label", "tune_embeddings": False, "epochs": 1, "random_state": 0}
    detector = RatioDetector(calibration=0.0, **parameters).fit(X, tasks, labels=labels)
    detector.add_task(9, X[:4], labels=[0, 0, 0, 1])
    detector.partial_fit(X[:3], [9] * 3, labels=[0, 0, 2])
    np.testing.assert_array_equal(detector.task_embeddings_[-1], [1, 1, 1])


def test_what_was_trained_of_labels_that_do_not_occur_stays() -> None:
    X, tasks = ring(4, 30)
    detector = RatioDetector(embedding="label", pace=10.0, epochs=20, calibration=0.0, random_state=0)
    detector.fit(X, tasks, labels=tasks)
    before = detector.task_embeddings_.copy()
    assert (before < 0).any()
    detector.partial_fit(X, tasks, labels=tasks)
    absent = ~np.eye(4, dtype=bool)
    np.testing.assert_array_equal(detector.task_embeddings_[absent], before[absent])


def test_levels_of_a_stream_are_those_of_one_piece() -> None:
    X, tasks = ring(4, 60)
    fresh = ring(4, 60, seed=1)[0]
    ends = []
    for pieces in (1, 6):
        detector = ClosedFormDetector(features="fourier", size=16, random_state=0).fit(X, tasks)
        for start in range(pieces):
            detector.partial_fit(fresh[start::pieces], tasks[start::pieces])
        ends.append(detector.tasks_.column("level").numpy().copy())
    np.testing.assert_allclose(ends[0], ends[1], atol=0.03)


def test_a_stream_takes_all_places_of_a_contrastive_task_in_time() -> None:
    X, tasks = ring(4, 30)
    detector = ContrastiveDetector(epochs=1, calibration=0.0, random_state=0).fit(X, tasks)
    first = detector.task_embeddings_[0].reshape(16, -1).copy()
    later = ring(4, 75, seed=1)[0]
    for row in later:
        detector.partial_fit(row[None], [0])
    stayed = (detector.task_embeddings_[0].reshape(16, -1) == first).all(axis=1).sum()
    # Each place keeps one of the first 30 of 330 with probability 1/11; all sixteen together 1.5 on average.
    assert stayed <= 6


def test_an_interrupted_task_of_its_own_network_leaves_scores_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    X, tasks = ring(4, 30)
    detector = RatioDetector(joint=False, dropout=0.5, epochs=1, calibration=0.0, random_state=0).fit(X, tasks)
    before = detector.novelty(X, tasks)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("offmap.collaborative.separate.train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        detector.add_task(9, X[:20])
    assert (detector.novelty(X, tasks) == before).all()
