"""The likelihood ratio against the true one, its optimum, and what the paper says of embeddings."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.datasets import load_digits

from offmap.collaborative import RatioDetector
from offmap.collaborative.embeddings import Clusters
from offmap.collaborative.exposures import Exposures
from offmap.collaborative.heads import ConcatHead, TwoTowerHead
from offmap.collaborative.joint import logistic
from offmap.collaborative.seeds import choose_seeds
from offmap.collaborative.separate import Stack, flat_weights
from offmap.collaborative.solve import EmbeddingSolver
from offmap.metrics import auroc
from tests.collaborative.problems import ring, ring_log_ratio, small


@pytest.mark.parametrize(
    "settings",
    [
        {"head": "two_tower", "embedding_size": 8},
        {"head": "concat", "embedding": "learned", "seed_tasks": 8},
        {"joint": False, "hidden": (32,), "lr": 1e-2, "epochs": 40},
    ],
    ids=["two-tower", "concat", "apart"],
)
def test_the_log_ratio_of_gaussians_is_found_in_order_and_in_size(settings: dict[str, Any]) -> None:
    X, tasks = ring(8, 250)
    parameters = dict[str, Any](epochs=40, hidden=(64, 32), lr=3e-3, calibration=0.0, random_state=0) | settings
    detector = RatioDetector(**parameters).fit(X, tasks)
    fresh, _ = ring(8, 40, seed=9)
    for task in (0, 3):
        true = ring_log_ratio(fresh, task, 8)
        found = detector.familiarity(fresh, [task])[:, 0]
        near = true > -4  # far away a finite sample says little
        assert np.corrcoef(true[near], found[near])[0, 1] > 0.9
        slope, offset = np.polyfit(true[near], found[near], 1)
        assert 0.6 < slope < 1.4
        assert abs(offset) < 0.6


def test_the_logistic_loss_is_least_at_the_log_ratio() -> None:
    """On two atoms: q = (0.8, 0.2) and p = (0.3, 0.7)."""

    def loss(f: NDArray[np.float64]) -> float:
        own, population = torch.tensor([f[0]] * 8 + [f[1]] * 2), torch.tensor([f[0]] * 3 + [f[1]] * 7)
        return float(logistic(own, population))

    best = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10}).x
    np.testing.assert_allclose(best, np.log([0.8 / 0.3, 0.2 / 0.7]), atol=1e-3)


def test_a_batch_is_its_own_population() -> None:
    torch.manual_seed(0)
    rows, embeddings = torch.randn(5, 3), torch.randn(5, 4)
    concat = ConcatHead(3, 4, (6,), 0.0)
    own, population = concat.contrast(concat.rows(rows), embeddings)
    both = torch.cat([concat.of_row.weight, concat.of_task.weight], dim=1)
    layer = torch.cat([rows, embeddings], dim=1) @ both.T + concat.of_row.bias
    torch.testing.assert_close(own, concat.above(layer).squeeze(1))
    torch.testing.assert_close(population[1], concat(concat.rows(rows[:1]), embeddings[1:2])[0])
    tower = TwoTowerHead(3, 4, (6,), 0.0)
    own, population = tower.contrast(tower.rows(rows), embeddings)
    naive = [tower(tower.rows(rows)[i], embeddings[j]).item() for i in range(5) for j in range(5) if i != j]
    np.testing.assert_allclose(population.detach().numpy(), naive, atol=1e-5)
    torch.testing.assert_close(own, tower(tower.rows(rows), embeddings))


def test_the_solver_ends_at_the_optimum_that_scipy_finds() -> None:
    torch.manual_seed(0)
    known = torch.randn(50, 4) * torch.tensor([1.0, 0.5, 2.0, 0.3]) + 0.2
    population = torch.cat([torch.randn(512, 3), torch.ones(512, 1)], dim=1)
    solver = EmbeddingSolver(4, 512)
    solver.prepare(population, known)
    own = torch.cat([torch.randn(37, 3) + 0.7, torch.ones(37, 1)], dim=1)
    shown = Exposures(own, torch.arange(37), torch.tensor([0] * 30 + [1] * 7))
    found = solver(own, shown).numpy()
    precision = np.linalg.inv((solver.prior.root @ solver.prior.root.T).double().numpy())
    for task, rows in enumerate((own[:30].double().numpy(), own[30:].double().numpy())):

        def loss(e: NDArray[np.float64], rows: NDArray[np.float64] = rows) -> float:
            away = e - solver.prior.mean.numpy()
            fit = np.logaddexp(0, -rows @ e).mean() + np.logaddexp(0, population.numpy() @ e).mean()
            return float(len(rows) * fit + 0.5 * away @ precision @ away)

        best = minimize(loss, np.zeros(4), tol=1e-10)
        assert loss(found[task].astype(float)) < best.fun + 1e-4
        np.testing.assert_allclose(found[task], best.x, atol=2e-3)


def test_the_solver_finds_clear_cut_tasks_and_tasks_of_many_sizes_as_it_finds_each_alone() -> None:
    torch.manual_seed(0)
    known = 3 * torch.randn(50, 4)
    solver = EmbeddingSolver(4, 512)
    solver.prepare(torch.cat([3 * torch.randn(512, 3), torch.ones(512, 1)], dim=1), known)
    counts = [1, 300, 7, 40, 1, 120]
    tasks = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    order = torch.randperm(len(tasks))
    own = torch.cat([torch.randn(len(tasks), 3) + 8 * torch.randn(len(counts), 3)[tasks], torch.ones(len(tasks), 1)], 1)
    together = solver(own[order], Exposures(own[order], torch.arange(len(tasks)), tasks[order]))
    assert torch.isfinite(together).all()
    for task, count in enumerate(counts):
        alone = own[tasks == task]
        found = solver(alone, Exposures(alone, torch.arange(count), torch.zeros(count, dtype=torch.int64)))
        # Whole Newton steps from the prior's mean run away here.
        assert found.norm() < 3 * known.norm(dim=1).max()
        torch.testing.assert_close(together[task], found[0], atol=0.02, rtol=0.02)


def test_networks_side_by_side_are_networks_one_by_one() -> None:
    torch.manual_seed(0)

    def make() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1), torch.nn.Flatten(0))

    networks = [make() for _ in range(5)]
    weights, stack = flat_weights(networks), Stack(networks[0])
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


def digit_tasks(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Digits, each shown to one of 60 tasks with five active classes; returns X, y, tasks and active classes."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    active = np.stack([rng.permutation(10)[:5] for _ in range(60)])
    takes = [np.flatnonzero((active == label).any(axis=1)) for label in range(10)]
    tasks = np.array([rng.choice(takes[label]) for label in y])
    return X, y, tasks, active


def mean_auc(detector: RatioDetector, X: NDArray[np.float64], y: NDArray[np.int64], active: NDArray[np.int64]) -> float:
    scores = []
    for task, novelty in zip(detector.task_ids_, -detector.familiarity(X).T, strict=True):
        own = np.isin(y, active[task])
        scores.append(auroc(normal=novelty[own], novel=novelty[~own]))
    return float(np.mean(scores))


def test_learned_embeddings_beat_random_ones_and_labels_beat_both_on_digits() -> None:
    X, y, tasks, active = digit_tasks()
    train = np.arange(len(y)) % 4 > 0
    training = {"epochs": 25, "lr": 2e-3, "patience": 8, "pace": 1.0}
    base = {"hidden": (64, 32), "calibration": 0.0, "random_state": 0} | training
    settings = {"random": {"embedding_size": 10}, "learned": {"seed_tasks": 20}, "label": {}}
    found = {}
    for embedding, more in settings.items():
        detector = RatioDetector(embedding=embedding, **base, **more)  # type: ignore[arg-type] # of several types
        detector.fit(X[train], tasks[train], labels=y[train] if embedding == "label" else None)
        found[embedding] = mean_auc(detector, X[~train], y[~train], active)
    assert found["learned"] > found["random"] + 0.06
    assert found["label"] > found["learned"] + 0.02


def test_shares_of_labels_start_with_mean_0_and_variance_1_and_new_tasks_lean_to_the_mean() -> None:
    X, y, tasks, _ = digit_tasks()
    detector = small(RatioDetector, embedding="histogram", tune_embeddings=False, calibration=0.0)
    detector.fit(X, tasks, labels=y)
    shares = np.array([[np.mean(y[tasks == task] == label) for label in range(10)] for task in range(60)])
    expected = (shares - shares.mean(axis=0)) / shares.std(axis=0)
    np.testing.assert_allclose(detector.task_embeddings_, expected, atol=1e-5)

    counts = np.bincount(tasks)
    within = ((y[:, None] == np.arange(10)) - shares[tasks]) ** 2
    within = within.sum(axis=0) / (counts - 1).sum()
    worth = within / (shares.var(axis=0) - within * np.mean(1 / counts))
    shown = counts[7]
    detector.add_task(99, X[tasks == 7], labels=y[tasks == 7])
    np.testing.assert_allclose(detector.task_embeddings_[-1], expected[7] * shown / (shown + worth), atol=1e-4)


@pytest.mark.parametrize("embedding", ["learned", "pseudo", "histogram"])
def test_a_new_task_of_one_row_is_no_farther_out_than_those_that_were_fitted(embedding: str) -> None:
    X, tasks = ring()
    labels = (X > 0) @ [1, 2]
    told = labels if embedding == "histogram" else None
    detector = small(RatioDetector, embedding=embedding, seed_tasks=4, embedding_size=4, tune_embeddings=False)
    detector.fit(X, tasks, labels=told)
    farthest = np.linalg.norm(detector.task_embeddings_, axis=1).max()
    detector.add_task(50, X[:1], labels=None if told is None else told[:1])
    assert np.linalg.norm(detector.task_embeddings_[-1]) < farthest


def test_clusters_do_not_depend_on_the_units_of_columns() -> None:
    rows = torch.from_numpy(np.column_stack([ring()[0], np.random.default_rng(1).normal(size=180)])).float()
    found = []
    for X in (rows, rows * torch.tensor([1.0, 1.0, 1000.0])):
        torch.manual_seed(0)
        found.append(Clusters(3, 4).fit(X).assign(X))
    assert len(found[0].unique()) > 1
    assert torch.equal(*found)


def test_random_embeddings_lag_behind_at_the_pace_of_the_network() -> None:
    X, tasks = ring(tasks=30, each=40)

    found = []
    for pace in (1.0, None):
        detector = small(RatioDetector, epochs=10, hidden=(32, 16), batch_size=64, decay=0.0, pace=pace)
        found.append(min(detector.fit(X, tasks).history_["validation"]))
    assert found[1] < found[0] - 0.1


def test_embeddings_of_tasks_that_share_classes_are_close() -> None:
    X, _, tasks, active = digit_tasks()
    detector = RatioDetector(head="two_tower", embedding_size=12, epochs=15, calibration=0.0, random_state=0)
    detector.fit(X, tasks)
    vectors = detector.task_embeddings_ - detector.task_embeddings_.mean(axis=0)
    cosine = np.corrcoef(vectors)
    shared = (active[:, None, :, None] == active[None, :, None, :]).sum(axis=(2, 3))
    apart = ~np.eye(60, dtype=bool)
    assert np.corrcoef(cosine[apart], shared[apart])[0, 1] > 0.4
    similar = detector.similar_tasks(0, k=5)
    assert np.mean(shared[0, similar.tasks]) > np.mean(shared[0][apart[0]]) + 0.3
    assert (np.diff(similar.cosine) <= 0).all()


def test_the_level_of_a_new_task_of_many_exposures_is_that_of_a_known_one() -> None:
    X, tasks = ring(8, 100)
    detector = RatioDetector(head="two_tower", epochs=15, hidden=(32,), random_state=0).fit(X, tasks)
    detector.add_task(50, X[tasks == 3])
    fresh, _ = ring(8, 100, seed=4)
    known, new = detector.familiarity(fresh, [3, 50]).T
    assert np.corrcoef(known, new)[0, 1] > 0.99
    assert abs(np.mean(known - new)) < 0.5


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        ({"embedding": "given"}, {}, "embeddings must be given"),
        ({}, {"embeddings": {0: [1.0], 1: [2.0], 2: [3.0]}}, "embeddings must be given to fit with"),
        ({"embedding": "given"}, {"embeddings": {0: [1.0], 1: [2.0]}}, "embeddings lacks the task 2"),
        ({"embedding": "given"}, {"embeddings": ([0, 0, 2], np.ones((3, 2)))}, "one vector for each id"),
        ({"embedding": "given"}, {"embeddings": ([0, 1, 2], np.full((3, 2), np.nan))}, "NaN"),
        ({"embedding": "histogram"}, {}, "labels must be given"),
        ({"embedding": "histogram"}, {"labels": np.full(90, np.nan)}, "labels holds missing values"),
        ({"embedding": "histogram"}, {"labels": [None, *"ab" * 44, "c"]}, "labels holds missing values"),
        ({"embedding": "given"}, {"embeddings": {0: [1.0], 1: [2.0], 2: [3.0, 4.0]}}, "all of one length"),
        ({"embedding": "histogram"}, {"labels": [1, 2]}, "labels must have one label for each of the 90 rows"),
        ({"dropout": (0.5, 0.5, 0.5)}, {}, "dropout must be one number, or one for each of the 2 layers"),
        ({"seed_tasks": 0}, {}, "seed_tasks must be an integer at least 1"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], arguments: dict[str, object], message: str) -> None:
    X, tasks = ring(3, 30)
    with pytest.raises(ValueError, match=message):
        RatioDetector(epochs=1, **settings).fit(X, tasks, **arguments)  # type: ignore[arg-type] # what is refused
