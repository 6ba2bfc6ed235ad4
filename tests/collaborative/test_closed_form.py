"""The closed form against a direct solve, streams against batches, and what blending does for few rows."""

from typing import Any

import numpy as np
import pytest
import torch

from offmap.collaborative import ClosedFormDetector
from offmap.collaborative.blend import blend
from offmap.collaborative.gram import Gram, log_ratio
from offmap.collaborative.observations import Observations
from offmap.metrics import auroc
from tests.collaborative.problems import ring, ring_log_ratio


def test_the_weights_are_those_of_a_direct_solve() -> None:
    """Least squares over the population and a constant feature, which the ridge leaves alone."""
    rng = np.random.default_rng(0)
    phi, entities = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4)) + 1, np.arange(300) % 5
    gram = Gram(4).double()
    features = torch.from_numpy(phi)
    gram.fit(features, torch.ones(300))
    gram.ridge.fill_(7.0)
    observed = Observations(features, torch.arange(300), torch.from_numpy(entities))
    rotated = gram.rotate(features)
    ratios = 1 + rotated @ gram.solve(observed.entity_means(rotated), observed.counts).T
    centred = phi - phi.mean(axis=0)
    full = np.column_stack([centred, np.ones(300)])
    gram_matrix = full.T @ full / 300
    ridge = 7.0 * np.trace(np.cov(phi.T, bias=True)) / 4 / 60
    penalty = np.diag([ridge] * 4 + [0.0])
    for entity in range(5):
        weights = np.linalg.solve(gram_matrix + penalty, full[entities == entity].mean(axis=0))
        np.testing.assert_allclose(ratios[:, entity].numpy(), full @ weights, atol=1e-6)


def test_rows_count_as_often_as_they_were_shown() -> None:
    rng = np.random.default_rng(1)
    X, index = rng.normal(size=(50, 3)), rng.integers(50, size=400)
    weighted, repeated = Gram(3).double(), Gram(3).double()
    weighted.fit(torch.from_numpy(X), torch.bincount(torch.from_numpy(index), minlength=50).double())
    repeated.fit(torch.from_numpy(X[index]), torch.ones(400))
    torch.testing.assert_close(weighted.spread, repeated.spread)
    torch.testing.assert_close(weighted.mean, repeated.mean)


def test_rows_that_are_given_once_count_as_often_as_they_were_shown() -> None:
    X, entities = ring(4, 20)
    rows, observed = (
        np.concatenate([np.arange(80), np.repeat(np.arange(5), 30)]),
        np.concatenate([entities, np.tile(entities, 2)[:150]]),
    )
    settings: dict[str, Any] = {
        "features": "pca",
        "embedding_size": 2,
        "ridge": 1.0,
        "calibration": 0.0,
        "random_state": 0,
    }
    once = ClosedFormDetector(**settings).fit(X, observed, rows=rows)
    repeated = ClosedFormDetector(**settings).fit(X[rows], observed)
    np.testing.assert_allclose(once.familiarity(X), repeated.familiarity(X), atol=1e-4)


def test_neighbours_count_for_entities_of_few_rows_and_for_no_others() -> None:
    X, entities = ring(8, 40)
    few = np.concatenate([X[entities < 7], X[entities == 7][:3]]), np.concatenate([entities[entities < 7], [7] * 3])
    settings: dict[str, Any] = {"features": "fourier", "ridge": 1.0, "calibration": 0.0, "random_state": 0}
    alone, blended = (ClosedFormDetector(n_neighbors=count, **settings).fit(*few) for count in (0, 5))
    for detector in (alone, blended):
        detector.add_entity(8, X[:3]).add_entity(9, X[:20])
    differs = np.abs(alone.entity_embeddings_ - blended.entity_embeddings_).max(axis=1) > 1e-3
    assert differs.tolist() == [False] * 7 + [True, True, False]


@pytest.mark.parametrize("features", ["fourier", "pca", "two_tower"])
def test_rows_far_beyond_all_rows_are_novel_to_every_entity(features: str) -> None:
    X, entities = ring(8, 60)
    detector = ClosedFormDetector(features=features, embedding_size=16, epochs=5, random_state=0)  # type: ignore[arg-type] # from a list
    detector.fit(X, entities)
    ways = np.random.default_rng(1).normal(size=(50, 2))
    for far in (100.0, 10_000.0):
        out = far * ways / np.linalg.norm(ways, axis=1, keepdims=True)
        for entity in range(8):
            assert (detector.predict(out, np.full(50, entity)) == -1).all()
    # Within reach nothing changes: the score is the ratio alone.
    penalty = detector.features_.get_submodule("penalty")
    assert float(penalty(torch.from_numpy(1.5 * X).float()).max()) == 0.0


@pytest.mark.filterwarnings("ignore:entities have a tenth more rows")
@pytest.mark.parametrize("features", ["fourier", "pca", "two_tower"])
def test_a_stream_in_pieces_ends_where_a_batch_does(features: str) -> None:
    X, entities = ring(8, 60)
    start = ClosedFormDetector(features=features, embedding_size=16, epochs=2, calibration=0.1, random_state=0)  # type: ignore[arg-type] # from a list
    start.fit(X, entities)
    fresh, _ = ring(4, 25, seed=5)
    whole = ClosedFormDetector(**start.get_params()).fit(X, entities)
    whole.add_entity(100, fresh).partial_fit(fresh, np.full(100, 3))
    order = np.random.default_rng(0).permutation(100)
    for piece in np.array_split(order, [1, 3, 9, 40]):
        start.partial_fit(np.tile(fresh[piece], (2, 1)), np.repeat([100, 3], len(piece)))
    assert start.entity_counts_.tolist() == whole.entity_counts_.tolist()
    np.testing.assert_allclose(start.entity_embeddings_, whole.entity_embeddings_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(start.familiarity(X), whole.familiarity(X), rtol=1e-3, atol=1e-3)


def test_the_ratio_of_gaussians_is_found() -> None:
    X, entities = ring(8, 300)
    detector = ClosedFormDetector(features="fourier", embedding_size=256, calibration=0.0, random_state=0).fit(
        X, entities
    )
    fresh, _ = ring(8, 50, seed=3)
    true, found = ring_log_ratio(fresh, 2, 8), detector.familiarity(fresh, [2])[:, 0]
    near = true > -1
    assert np.corrcoef(true[near], found[near])[0, 1] > 0.9
    assert abs(np.mean(found[near] - true[near])) < 0.5


def test_an_unseen_entity_is_scored_as_well_as_a_seen_one() -> None:
    X, entities = ring(12, 60)
    seen = entities != 5
    both = {}
    for name, chosen in (("seen", np.ones(len(X), dtype=bool)), ("unseen", seen)):
        detector = ClosedFormDetector(embedding_size=16, epochs=15, hidden=(32,), calibration=0.0, random_state=0)
        detector.fit(X[chosen], entities[chosen])
        if name == "unseen":
            detector.add_entity(5, X[entities == 5][:20])
        fresh, ids = ring(12, 60, seed=7)
        novelty = detector.novelty(fresh, np.full(len(fresh), 5))
        both[name] = auroc(normal=novelty[ids == 5], novel=novelty[ids != 5])
    assert both["seen"] > 0.9
    assert both["unseen"] > both["seen"] - 0.02


def test_few_rows_lean_on_the_nearest_entities() -> None:
    known = torch.tensor([[4.0, 0.0], [5.0, 0.5], [0.0, 4.0]])
    weights, counts = torch.tensor([[1.0, 0.2], [1.0, 0.2], [1.0, 0.2]]), torch.tensor([2, 9, 10])
    mixed = blend(weights, counts, known, n_neighbors=2)
    nearest = known[:2].mean(dim=0)
    torch.testing.assert_close(mixed[0], 0.6 * weights[0] + 0.4 * nearest)
    torch.testing.assert_close(mixed[1], 0.95 * weights[1] + 0.05 * nearest)
    torch.testing.assert_close(mixed[2], weights[2])
    torch.testing.assert_close(blend(weights, counts, known, n_neighbors=0), weights)
    torch.testing.assert_close(blend(weights, counts, known[:0], n_neighbors=2), weights)


def test_log_ratios_are_smooth_and_rise() -> None:
    ratio = torch.linspace(-3, 5, 4001, dtype=torch.float64)
    found = log_ratio(ratio)
    assert (found.diff() > 0).all()
    assert found.diff().diff().abs().max() < 1e-4
    torch.testing.assert_close(found[ratio > 0.5], ratio[ratio > 0.5].log())


def test_a_given_ridge_is_taken_and_a_chosen_one_follows_the_noise() -> None:
    X, entities = ring(8, 40)
    fixed = ClosedFormDetector(features="pca", ridge=2.5, calibration=0.0, random_state=0).fit(X, entities)
    assert float(fixed.features_.get_buffer("gram.ridge")) == 2.5
    rng = np.random.default_rng(0)
    noisy = np.column_stack([X, rng.normal(size=(len(X), 60))])
    few = np.concatenate([np.flatnonzero(entities == entity)[:6] for entity in range(8)])
    chosen = [
        ClosedFormDetector(features="pca", calibration=0.0, random_state=0).fit(rows, ids).features_
        for rows, ids in ((X, entities), (noisy[few], entities[few]))
    ]
    ridges = [float(features.get_buffer("gram.ridge")) for features in chosen]
    assert ridges[1] > ridges[0]
