"""The likelihood ratio against the true one, its optimum, and what the paper says of embeddings."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.datasets import load_digits

from offmap.collaborative import RatioDetector, SeparateRatioDetector
from offmap.collaborative.heads import ConcatHead, InnerProductHead, concat_features, tower_features
from offmap.collaborative.newton import NewtonSolver
from offmap.collaborative.observations import Observations
from offmap.collaborative.row_values import Clusters
from offmap.collaborative.seeds import choose_seeds
from offmap.collaborative.separate import NetworkStack, flat_weights
from offmap.metrics import auroc
from offmap.ratio import ratio_loss
from tests.collaborative.problems import ring, ring_log_ratio, small


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (RatioDetector, {"head": "two_tower", "embedding_size": 8}),
        (RatioDetector, {"head": "concat", "embedding": "learned", "seed_entities": 8}),
        (SeparateRatioDetector, {"hidden": (32,), "lr": 1e-2, "epochs": 40}),
    ],
    ids=["two-tower", "concat", "separate"],
)
def test_the_log_ratio_of_gaussians_is_found_in_order_and_in_size(cls: Any, settings: dict[str, Any]) -> None:
    X, entities = ring(8, 250)
    parameters = dict[str, Any](epochs=40, hidden=(64, 32), lr=3e-3, calibration=0.0, random_state=0) | settings
    detector = cls(**parameters).fit(X, entities)
    fresh, _ = ring(8, 40, seed=9)
    for entity in (0, 3):
        true = ring_log_ratio(fresh, entity, 8)
        found = detector.familiarity(fresh, [entity])[:, 0]
        near = true > -4  # far away a finite sample says little
        assert np.corrcoef(true[near], found[near])[0, 1] > 0.9
        slope, offset = np.polyfit(true[near], found[near], 1)
        assert 0.6 < slope < 1.4
        assert abs(offset) < 0.6


def test_the_logistic_loss_is_least_at_the_log_ratio() -> None:
    """On two atoms: q = (0.8, 0.2) and p = (0.3, 0.7)."""

    def loss(f: NDArray[np.float64]) -> float:
        own, population = torch.tensor([f[0]] * 8 + [f[1]] * 2), torch.tensor([f[0]] * 3 + [f[1]] * 7)
        return float(ratio_loss(own, population))

    best = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10}).x
    np.testing.assert_allclose(best, np.log([0.8 / 0.3, 0.2 / 0.7]), atol=1e-3)


def test_a_batch_is_its_own_population() -> None:
    torch.manual_seed(0)
    rows, embeddings = torch.randn(5, 3), torch.randn(5, 4)
    features, concat = concat_features(torch.nn.Identity(), 3, (6,)), ConcatHead(4, (6,), 0.0)
    own, population = concat.contrast(features(rows), embeddings)
    of_row = features.get_submodule("1")
    assert isinstance(of_row, torch.nn.Linear)
    both = torch.cat([of_row.weight, concat.of_entity.weight], dim=1)
    layer = torch.cat([rows, embeddings], dim=1) @ both.T + of_row.bias
    torch.testing.assert_close(own, concat.above(layer).squeeze(1))
    torch.testing.assert_close(population[1], concat(features(rows[:1]), embeddings[1:2])[0])
    tower, inner = tower_features(torch.nn.Identity(), 3, 4, (6,), 0.0), InnerProductHead()
    own, population = inner.contrast(tower(rows), embeddings)
    naive = [inner(tower(rows)[i], embeddings[j]).item() for i in range(5) for j in range(5) if i != j]
    np.testing.assert_allclose(population.detach().flatten().numpy(), naive, atol=1e-5)
    torch.testing.assert_close(own, inner(tower(rows), embeddings))
    assert (tower(rows)[:, -1] == 1).all()


def test_the_solver_ends_at_the_optimum_that_scipy_finds() -> None:
    torch.manual_seed(0)
    known = torch.randn(50, 4) * torch.tensor([1.0, 0.5, 2.0, 0.3]) + 0.2
    population = torch.cat([torch.randn(512, 3), torch.ones(512, 1)], dim=1)
    solver = NewtonSolver(4, 512)
    solver.prepare(population, known)
    own = torch.cat([torch.randn(37, 3) + 0.7, torch.ones(37, 1)], dim=1)
    observed = Observations(own, torch.arange(37), torch.tensor([0] * 30 + [1] * 7))
    found = solver(own, observed).numpy()
    precision = np.linalg.inv((solver.prior.root @ solver.prior.root.T).double().numpy())
    for entity, rows in enumerate((own[:30].double().numpy(), own[30:].double().numpy())):

        def loss(e: NDArray[np.float64], rows: NDArray[np.float64] = rows) -> float:
            away = e - solver.prior.mean.numpy()
            fit = np.logaddexp(0, -rows @ e).mean() + np.logaddexp(0, population.numpy() @ e).mean()
            return float(len(rows) * fit + 0.5 * away @ precision @ away)

        best = minimize(loss, np.zeros(4), tol=1e-10)
        assert loss(found[entity].astype(float)) < best.fun + 1e-4
        np.testing.assert_allclose(found[entity], best.x, atol=2e-3)


def test_the_solver_finds_clear_cut_entities_and_entities_of_many_sizes_as_it_finds_each_alone() -> None:
    torch.manual_seed(0)
    known = 3 * torch.randn(50, 4)
    solver = NewtonSolver(4, 512)
    solver.prepare(torch.cat([3 * torch.randn(512, 3), torch.ones(512, 1)], dim=1), known)
    counts = [1, 300, 7, 40, 1, 120]
    entities = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    order = torch.randperm(len(entities))
    own = torch.cat(
        [torch.randn(len(entities), 3) + 8 * torch.randn(len(counts), 3)[entities], torch.ones(len(entities), 1)], 1
    )
    together = solver(own[order], Observations(own[order], torch.arange(len(entities)), entities[order]))
    assert torch.isfinite(together).all()
    for entity, count in enumerate(counts):
        alone = own[entities == entity]
        found = solver(alone, Observations(alone, torch.arange(count), torch.zeros(count, dtype=torch.int64)))
        # Whole Newton steps from the prior's mean run away here.
        assert found.norm() < 3 * known.norm(dim=1).max()
        torch.testing.assert_close(together[entity], found[0], atol=0.02, rtol=0.02)


def test_networks_side_by_side_are_networks_one_by_one() -> None:
    torch.manual_seed(0)

    def make() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1), torch.nn.Flatten(0))

    networks = [make() for _ in range(5)]
    weights, stack = flat_weights(networks), NetworkStack(networks[0])
    X, places = torch.randn(200, 3), torch.randint(5, (200,))
    expected = torch.stack([networks[int(place)](row.unsqueeze(0))[0] for row, place in zip(X, places, strict=True)])
    torch.testing.assert_close(stack.of_pairs(weights, X, places), expected)
    torch.testing.assert_close(stack.of_all(weights, X)[torch.arange(200), places], expected)


def test_seeds_spread_out_or_follow_leverage() -> None:
    torch.manual_seed(0)
    means = torch.cat([0.01 * torch.randn(97, 2), torch.tensor([[5.0, 0.0], [0.0, 5.0], [-5.0, -5.0]])])
    assert choose_seeds(means, 3, "k_centre").tolist() == [97, 98, 99]
    assert choose_seeds(torch.zeros(5, 2), 5, "k_centre").tolist() == [0, 1, 2, 3, 4]
    by_leverage = [choose_seeds(means, 3, "leverage") for _ in range(20)]
    assert np.mean([(seeds >= 97).float().mean() for seeds in by_leverage]) > 0.7
    assert len(choose_seeds(means, 300, "random").unique()) == 100


def digit_entities(
    seed: int = 0,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Digits, each of one of 60 entities with five active classes; returns X, y, entities and active classes."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    active = np.stack([rng.permutation(10)[:5] for _ in range(60)])
    takes = [np.flatnonzero((active == label).any(axis=1)) for label in range(10)]
    entities = np.array([rng.choice(takes[label]) for label in y])
    return X, y, entities, active


def mean_auc(detector: RatioDetector, X: NDArray[np.float64], y: NDArray[np.int64], active: NDArray[np.int64]) -> float:
    scores = []
    for entity, novelty in zip(detector.entity_ids_, -detector.familiarity(X).T, strict=True):
        own = np.isin(y, active[entity])
        scores.append(auroc(normal=novelty[own], novel=novelty[~own]))
    return float(np.mean(scores))


def test_learned_embeddings_beat_random_ones_and_labels_beat_both_on_digits() -> None:
    X, y, entities, active = digit_entities()
    train = np.arange(len(y)) % 4 > 0
    training = {"epochs": 25, "lr": 2e-3, "patience": 8, "embedding_lr_factor": 1.0}
    base = {"hidden": (64, 32), "calibration": 0.0, "random_state": 0} | training
    settings = {"random": {"embedding_size": 10}, "learned": {"seed_entities": 20}, "label": {}}
    found = {}
    for embedding, more in settings.items():
        detector = RatioDetector(head="concat", embedding=embedding, **base, **more)  # type: ignore[arg-type] # of several types
        detector.fit(X[train], entities[train], labels=y[train] if embedding == "label" else None)
        found[embedding] = mean_auc(detector, X[~train], y[~train], active)
    assert found["learned"] > found["random"] + 0.06
    assert found["label"] > found["learned"] + 0.02


def test_shares_of_labels_start_with_mean_0_and_variance_1_and_new_entities_lean_to_the_mean() -> None:
    X, y, entities, _ = digit_entities()
    detector = small(RatioDetector, head="concat", embedding="histogram", tune_embeddings=False, calibration=0.0)
    detector.fit(X, entities, labels=y)
    shares = np.array([[np.mean(y[entities == entity] == label) for label in range(10)] for entity in range(60)])
    expected = (shares - shares.mean(axis=0)) / shares.std(axis=0)
    np.testing.assert_allclose(detector.entity_embeddings_, expected, atol=1e-5)

    counts = np.bincount(entities)
    within = ((y[:, None] == np.arange(10)) - shares[entities]) ** 2
    within = within.sum(axis=0) / (counts - 1).sum()
    worth = within / (shares.var(axis=0) - within * np.mean(1 / counts))
    observed = counts[7]
    detector.add_entity(99, X[entities == 7], labels=y[entities == 7])
    np.testing.assert_allclose(detector.entity_embeddings_[-1], expected[7] * observed / (observed + worth), atol=1e-4)


@pytest.mark.parametrize("embedding", ["learned", "pseudo", "histogram"])
def test_a_new_entity_of_one_row_is_no_farther_out_than_those_that_were_fitted(embedding: str) -> None:
    X, entities = ring()
    labels = (X > 0) @ [1, 2]
    told = labels if embedding == "histogram" else None
    start = {"head": "concat", "embedding": embedding, "seed_entities": 4, "embedding_size": 4}
    detector = small(RatioDetector, tune_embeddings=False, **start)
    detector.fit(X, entities, labels=told)
    farthest = np.linalg.norm(detector.entity_embeddings_, axis=1).max()
    detector.add_entity(50, X[:1], labels=None if told is None else told[:1])
    assert np.linalg.norm(detector.entity_embeddings_[-1]) < farthest


def test_clusters_do_not_depend_on_the_units_of_columns() -> None:
    rows = torch.from_numpy(np.column_stack([ring()[0], np.random.default_rng(1).normal(size=180)])).float()
    found = []
    for X in (rows, rows * torch.tensor([1.0, 1.0, 1000.0])):
        torch.manual_seed(0)
        found.append(Clusters(3, 4).fit(X).assign(X))
    assert len(found[0].unique()) > 1
    assert torch.equal(*found)


def test_random_embeddings_lag_behind_at_the_step_size_of_the_network() -> None:
    X, entities = ring(entities=30, each=40)

    found = []
    for pace in (1.0, None):
        detector = small(
            RatioDetector,
            head="concat",
            epochs=10,
            hidden=(32, 16),
            batch_size=64,
            embedding_decay=0.0,
            embedding_lr_factor=pace,
        )
        found.append(min(detector.fit(X, entities).history_["validation"]))
    assert found[1] < found[0] - 0.1


def test_embeddings_of_entities_that_share_classes_are_close() -> None:
    X, _, entities, active = digit_entities()
    detector = RatioDetector(head="two_tower", embedding_size=12, epochs=15, calibration=0.0, random_state=0)
    detector.fit(X, entities)
    vectors = detector.entity_embeddings_ - detector.entity_embeddings_.mean(axis=0)
    cosine = np.corrcoef(vectors)
    shared = (active[:, None, :, None] == active[None, :, None, :]).sum(axis=(2, 3))
    apart = ~np.eye(60, dtype=bool)
    assert np.corrcoef(cosine[apart], shared[apart])[0, 1] > 0.4
    similar = detector.similar_entities(0, k=5)
    assert np.mean(shared[0, similar.entities]) > np.mean(shared[0][apart[0]]) + 0.3
    assert (np.diff(similar.cosine) <= 0).all()


def test_the_level_of_a_new_entity_of_many_rows_is_that_of_a_known_one() -> None:
    X, entities = ring(8, 100)
    detector = RatioDetector(head="two_tower", epochs=15, hidden=(32,), random_state=0).fit(X, entities)
    detector.add_entity(50, X[entities == 3])
    fresh, _ = ring(8, 100, seed=4)
    known, new = detector.familiarity(fresh, [3, 50]).T
    assert np.corrcoef(known, new)[0, 1] > 0.99
    assert abs(np.mean(known - new)) < 0.5


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        ({"head": "concat", "embedding": "given"}, {}, "embeddings must be given"),
        ({"head": "concat"}, {"embeddings": {0: [1.0], 1: [2.0], 2: [3.0]}}, "embeddings must be given to fit with"),
        (
            {"head": "concat", "embedding": "given"},
            {"embeddings": {0: [1.0], 1: [2.0]}},
            "embeddings lacks the entity 2",
        ),
        (
            {"head": "concat", "embedding": "given"},
            {"embeddings": ([0, 0, 2], np.ones((3, 2)))},
            "one vector for each id",
        ),
        ({"head": "concat", "embedding": "given"}, {"embeddings": ([0, 1, 2], np.full((3, 2), np.nan))}, "NaN"),
        ({"head": "concat", "embedding": "histogram"}, {}, "labels must be given"),
        ({"head": "concat", "embedding": "histogram"}, {"labels": np.full(90, np.nan)}, "labels holds missing values"),
        (
            {"head": "concat", "embedding": "histogram"},
            {"labels": [None, *"ab" * 44, "c"]},
            "labels holds missing values",
        ),
        (
            {"head": "concat", "embedding": "given"},
            {"embeddings": {0: [1.0], 1: [2.0], 2: [3.0, 4.0]}},
            "all of one length",
        ),
        (
            {"head": "concat", "embedding": "histogram"},
            {"labels": [1, 2]},
            "labels must have one label for each of the 90 rows",
        ),
        ({"embedding": "learned"}, {}, 'embedding="learned" needs head="concat" or "two_tower"'),
        ({}, {"embeddings": {0: [1.0], 1: [2.0], 2: [3.0]}}, 'embeddings needs head="concat"'),
        ({"dropout": (0.5, 0.5, 0.5)}, {}, "dropout must be one number, or one for each of the 2 layers"),
        ({"seed_entities": 0}, {}, "seed_entities must be an integer at least 1"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], arguments: dict[str, object], message: str) -> None:
    X, entities = ring(3, 30)
    with pytest.raises(ValueError, match=message):
        RatioDetector(epochs=1, **settings).fit(X, entities, **arguments)  # type: ignore[arg-type] # what is refused


def test_a_strong_decay_keeps_embeddings_where_they_started() -> None:
    X, entities = ring(4, 30)
    start = 5 * np.eye(4)
    moved = []
    for decay in (0.0, 1e3):
        detector = small(
            RatioDetector, head="concat", embedding="given", embedding_decay=decay, embedding_lr_factor=10.0, epochs=10
        )
        detector.fit(X, entities, embeddings=(np.arange(4), start))
        moved.append(np.abs(detector.entity_embeddings_ - start).max())
    assert moved[1] < 0.2 * moved[0]
