"""Densities that integrate to one, forests that are scikit-learn's, and losses against loops."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.ensemble import IsolationForest

from offmap.collaborative import ContrastiveDetector, DeepSVDDDetector, FlowDetector, ForestDetector, GaussianDetector
from offmap.collaborative.contrastive import contrast
from offmap.collaborative.gaussian import gaussian_log_density
from offmap.collaborative.made import Made, TaskFlow
from offmap.metrics import auroc
from tests.collaborative.problems import ring


@pytest.mark.parametrize(("size", "bends"), [(3, True), (3, False), (0, True)])
def test_the_density_of_a_flow_integrates_to_one_for_every_task(size: int, bends: bool) -> None:
    torch.manual_seed(0)
    flow = TaskFlow(2, (16, 16), 3, size, bends).double()
    for weight in flow.parameters():
        weight.data.add_(0.1 * torch.randn_like(weight))
    side = torch.linspace(-15, 15, 301, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side)
    for _ in range(2):
        task = torch.randn(1, size, dtype=torch.float64).expand(len(grid), -1) if size else None
        with torch.no_grad():
            total = flow(grid, task).exp().sum() * (side[1] - side[0]) ** 2
        assert abs(float(total) - 1) < 1e-2


def test_a_task_scales_and_shifts_every_unit_of_a_masked_layer() -> None:
    torch.manual_seed(0)
    layer, X, bend = Made(3, (5,), backwards=False), torch.randn(4, 3), torch.randn(4, 2, 11)
    first, _, second = layer.masked
    hidden = (X @ (first.mask * first.weight).T + first.bias) * bend[:, 0, :5] + bend[:, 1, :5]
    found = (hidden.relu() @ (second.mask * second.weight).T + second.bias) * bend[:, 0, 5:] + bend[:, 1, 5:]
    # Scales stay above a thousandth: zuko bounds their logarithm smoothly.
    shift, log_scale = found[:, ::2], found[:, 1::2] / (1 + found[:, 1::2].abs() / np.log(1000))
    Z, change = layer(X, bend)
    torch.testing.assert_close(Z, X * log_scale.exp() + shift)
    torch.testing.assert_close(change, log_scale.sum(dim=1))


def test_a_task_changes_the_density_in_both_ways() -> None:
    torch.manual_seed(0)
    X, tasks = torch.randn(5, 2), torch.randn(2, 3)
    for bends in (True, False):
        flow = TaskFlow(2, (8,), 2, 3, bends)
        one, other = (flow(X, task.expand(5, -1)) for task in tasks)
        assert not torch.allclose(one, other)


def test_the_gaussian_is_scipys() -> None:
    rng = np.random.default_rng(0)
    X, mean, log_variance = rng.normal(size=(3, 4, 2))
    found = gaussian_log_density(torch.from_numpy(X), torch.from_numpy(np.hstack([mean, log_variance])))
    expected = [
        multivariate_normal(m, np.diag(np.exp(v))).logpdf(x) for x, m, v in zip(X, mean, log_variance, strict=True)
    ]
    np.testing.assert_allclose(found.numpy(), expected)


def test_gaussians_apart_are_the_moments_of_tasks_and_a_stream_of_them_is_exact() -> None:
    X, tasks = ring(4, 200)
    detector = GaussianDetector(joint=False, calibration=0.0, random_state=0).fit(X, tasks)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    own = scaled[tasks == 1]
    np.testing.assert_allclose(detector.task_embeddings_[1, :2], own.mean(axis=0), atol=1e-5)
    shrunk = (200 * own.var(axis=0) + 10) / 210
    np.testing.assert_allclose(detector.task_embeddings_[1, 2:], np.log(shrunk), atol=1e-4)
    more, _ = ring(2, 50, seed=1)
    whole = GaussianDetector(joint=False, calibration=0.0, random_state=0).fit(X, tasks).add_task(9, more)
    pieces = detector.add_task(9, more[:10]).partial_fit(more[10:], np.full(90, 9))
    np.testing.assert_allclose(pieces.task_embeddings_[-1], whole.task_embeddings_[-1], atol=1e-4)


def test_a_forest_scores_as_scikit_learn_does() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3)).astype(np.float32)
    detector = ForestDetector(trees=10, calibration=0.0, random_state=0).fit(X, np.arange(150) % 2)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        row = detector._grown(X[:60])
        torch.manual_seed(7)
        seed = int(torch.randint(2**31 - 1, ()))
    expected = IsolationForest(n_estimators=10, max_samples=60, random_state=seed).fit(X[:60]).score_samples(X)
    found = detector._familiarity_at(torch.from_numpy(X), row.unsqueeze(0), torch.zeros(150, dtype=torch.int64))
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)
    with pytest.raises(ValueError, match="similar_tasks needs embeddings"):
        detector.similar_tasks(0)


def test_the_contrastive_loss_is_that_of_a_loop() -> None:
    torch.manual_seed(0)
    one, other = torch.randn(4, 3), torch.randn(4, 3)
    views = torch.cat([one, other])
    cosine = torch.cosine_similarity(views[:, None], views[None], dim=2) / 0.5
    total = 0.0
    for i in range(8):
        others = [j for j in range(8) if j != i]
        total -= float(cosine[i, (i + 4) % 8] - torch.logsumexp(cosine[i, others], dim=0))
    assert abs(float(contrast(one, other, 0.5)) - total / 8) < 1e-5


def test_kept_exposures_are_own_ones_and_give_way_to_new_ones() -> None:
    X, tasks = ring(4, 10)
    detector = ContrastiveDetector(epochs=2, kept=4, hidden=(8,), outputs=6, calibration=0.0, random_state=0)
    detector.fit(X, tasks)
    with torch.no_grad():
        features = detector._features(torch.from_numpy(X.astype(np.float32)))
    directions = torch.nn.functional.normalize(features[tasks == 2], dim=1)
    kept = torch.from_numpy(detector.task_embeddings_[2]).view(4, 6)
    nearest = (kept @ directions.T).max(dim=1)
    torch.testing.assert_close(nearest.values, torch.ones(4), atol=1e-4, rtol=0)
    assert len(nearest.indices.unique()) == 4
    before = detector.task_embeddings_[2].copy().reshape(4, 6)
    fresh, _ = ring(2, 500, seed=8)
    detector.partial_fit(fresh, np.full(1000, 2))
    assert (np.abs(detector.task_embeddings_[2].reshape(4, 6) - before).max(axis=1) > 1e-6).all()


def test_a_forest_of_one_exposure_is_scikit_learns() -> None:
    X, tasks = ring(2, 1)
    detector = ForestDetector(trees=5, calibration=0.0, random_state=0).fit(X, tasks)
    expected = IsolationForest(n_estimators=5, max_samples=1).fit(X[:1]).score_samples(X)
    np.testing.assert_allclose(detector.familiarity(X)[:, 0], expected)


@pytest.mark.parametrize(
    "detector",
    [
        GaussianDetector(epochs=40, embedding="learned", seed_tasks=6, lr=3e-3),
        FlowDetector(epochs=30, embedding="learned", seed_tasks=6, condition="prior", layers=3, lr=3e-3),
        FlowDetector(epochs=30, layers=2, hidden=(32,), lr=1e-2),
        FlowDetector(epochs=40, joint=False, layers=2, hidden=(16,), lr=1e-2),
        DeepSVDDDetector(epochs=30),
        ForestDetector(trees=30),
        ContrastiveDetector(epochs=10, hidden=(32,)),
    ],
    ids=["gaussian", "flow by its prior", "flow bent", "flow apart", "svdd", "forest", "contrastive"],
)
def test_every_rival_tells_own_rows_from_others(detector: GaussianDetector) -> None:
    X, tasks = ring(6, 60)
    detector.set_params(calibration=0.0, random_state=0).fit(X, tasks)
    fresh, ids = ring(6, 30, seed=2)
    novelty = -detector.familiarity(fresh)
    scores = [auroc(normal=novelty[ids == t, t], novel=novelty[ids != t, t]) for t in range(6)]
    assert np.mean(scores) > 0.75
