"""Densities that integrate to one, forests that are scikit-learn's, and losses against loops."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import multivariate_normal
from sklearn.ensemble import IsolationForest

from offmap.collaborative import (
    EntityContrastiveDetector,
    EntityFlowDetector,
    EntityForestDetector,
    EntityGaussianDetector,
    EntitySVDDDetector,
    SeparateFlowDetector,
    SeparateGaussianDetector,
)
from offmap.collaborative.contrastive import contrast
from offmap.collaborative.forest import ForestGrower, ForestHead
from offmap.collaborative.forest_nodes import Layout
from offmap.collaborative.gaussian import gaussian_log_density
from offmap.collaborative.made import ConditionedFlow, Made
from offmap.collaborative.observations import Observations
from offmap.metrics import auroc
from offmap.random_state import local_seed, torch_seed
from tests.collaborative.problems import ring


@pytest.mark.parametrize(("size", "bends"), [(3, True), (3, False), (0, True)])
def test_the_density_of_a_flow_integrates_to_one_for_every_entity(size: int, bends: bool) -> None:
    torch.manual_seed(0)
    flow = ConditionedFlow(2, (16, 16), 3, size, bends).double()
    for weight in flow.parameters():
        weight.data.add_(0.1 * torch.randn_like(weight))
    side = torch.linspace(-15, 15, 301, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side)
    for _ in range(2):
        entity = torch.randn(1, size, dtype=torch.float64).expand(len(grid), -1) if size else None
        with torch.no_grad():
            total = flow(grid, entity).exp().sum() * (side[1] - side[0]) ** 2
        assert abs(float(total) - 1) < 1e-2


def test_an_entity_scales_and_shifts_every_unit_of_a_masked_layer() -> None:
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


def test_an_entity_changes_the_density_in_both_ways() -> None:
    torch.manual_seed(0)
    X, entities = torch.randn(5, 2), torch.randn(2, 3)
    for bends in (True, False):
        flow = ConditionedFlow(2, (8,), 2, 3, bends)
        one, other = (flow(X, entity.expand(5, -1)) for entity in entities)
        assert not torch.allclose(one, other)


def test_the_gaussian_is_scipys() -> None:
    rng = np.random.default_rng(0)
    X, mean, log_variance = rng.normal(size=(3, 4, 2))
    found = gaussian_log_density(torch.from_numpy(X), torch.from_numpy(np.hstack([mean, log_variance])))
    expected = [
        multivariate_normal(m, np.diag(np.exp(v))).logpdf(x) for x, m, v in zip(X, mean, log_variance, strict=True)
    ]
    np.testing.assert_allclose(found.numpy(), expected)


def test_gaussians_apart_are_the_moments_of_entities_and_a_stream_of_them_is_exact() -> None:
    X, entities = ring(4, 200)
    detector = SeparateGaussianDetector(calibration=0.0, random_state=0).fit(X, entities)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    own = scaled[entities == 1]
    np.testing.assert_allclose(detector.entity_embeddings_[1, :2], own.mean(axis=0), atol=1e-5)
    shrunk = (200 * own.var(axis=0) + 10) / 210
    np.testing.assert_allclose(detector.entity_embeddings_[1, 2:], np.log(shrunk), atol=1e-4)
    more, _ = ring(2, 50, seed=1)
    whole = SeparateGaussianDetector(calibration=0.0, random_state=0).fit(X, entities).add_entity(9, more)
    pieces = detector.add_entity(9, more[:10]).partial_fit(more[10:], np.full(90, 9))
    np.testing.assert_allclose(pieces.entity_embeddings_[-1], whole.entity_embeddings_[-1], atol=1e-4)


def test_a_forest_scores_as_scikit_learn_does() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3)).astype(np.float32)
    detector = EntityForestDetector(n_estimators=10, calibration=0.0, random_state=0).fit(X, np.arange(150) % 2)
    assert isinstance(detector.solver_, ForestGrower)
    with local_seed(7):
        trees = detector.solver_._grown(torch.from_numpy(X[:60]))
    with local_seed(7):
        seed = torch_seed()
    head = ForestHead(Layout(10, sum(map(len, trees[0])), detector.samples_, 3))
    row = head.layout.row(*trees)
    expected = IsolationForest(n_estimators=10, max_samples=60, random_state=seed).fit(X[:60]).score_samples(X)
    found = head.score_at(torch.from_numpy(X), row.unsqueeze(0), torch.zeros(150, dtype=torch.int64))
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)
    with pytest.raises(ValueError, match="similar_entities needs embeddings"):
        detector.similar_entities(0)
    with pytest.raises(ValueError, match="partial_fit cannot add rows to a known entity of EntityForestDetector"):
        detector.partial_fit(X[:3], [0, 1, 9])


def test_a_forest_takes_eight_bytes_per_node() -> None:
    X = np.random.default_rng(0).normal(size=(600, 3)).astype(np.float32)
    detector = EntityForestDetector(calibration=0.0, random_state=0).fit(X, np.arange(600) % 2)
    nodes = [sum(map(len, values)) for values, _ in detector.solver_(torch.from_numpy(X), _halves(X))]
    column = detector.entities_.column("embedding")
    assert column.nbytes / len(column) <= 8 * 1.1 * max(nodes) + 4 * 100
    assert column.nbytes / len(column) < 150_000


def _halves(X: NDArray[np.float32]) -> Observations:
    return Observations(torch.from_numpy(X), torch.arange(len(X)), torch.arange(len(X)) % 2)


def test_a_forest_that_needs_more_room_than_there_is_has_fewer_trees_and_the_same_scale() -> None:
    rng = np.random.default_rng(0)
    narrow, wide = rng.normal(size=(2, 200, 2)).astype(np.float32)
    # Repeated rows isolate early: their trees are small.
    narrow[:150] = narrow[0]
    detector = EntityForestDetector(n_estimators=50, calibration=0.0, random_state=0)
    detector.fit(np.concatenate([narrow, narrow]), np.repeat([0, 1], 200))
    detector.add_entity(2, wide)
    trees = (detector.entity_embeddings_[:, :50] >= 0).sum(axis=1)
    assert trees[0] >= 45
    assert 10 < trees[2] < 50
    expected = IsolationForest(n_estimators=50, max_samples=200, random_state=0).fit(wide).score_samples(wide)
    assert np.abs(detector.familiarity(wide, [2])[:, 0] - expected).mean() < 0.03


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


def test_kept_rows_are_own_ones_and_give_way_to_new_ones() -> None:
    X, entities = ring(4, 10)
    detector = EntityContrastiveDetector(
        epochs=2, n_kept=4, hidden=(8,), output_size=6, calibration=0.0, random_state=0
    )
    detector.fit(X, entities)
    with torch.no_grad():
        features = detector.features_(torch.from_numpy(X.astype(np.float32)))
    directions = torch.nn.functional.normalize(features[entities == 2], dim=1)
    kept = torch.from_numpy(detector.entity_embeddings_[2]).view(4, 6)
    nearest = (kept @ directions.T).max(dim=1)
    torch.testing.assert_close(nearest.values, torch.ones(4), atol=1e-4, rtol=0)
    assert len(nearest.indices.unique()) == 4
    before = detector.entity_embeddings_[2].copy().reshape(4, 6)
    fresh, _ = ring(2, 500, seed=8)
    detector.partial_fit(fresh, np.full(1000, 2))
    assert (np.abs(detector.entity_embeddings_[2].reshape(4, 6) - before).max(axis=1) > 1e-6).all()


def test_a_forest_of_one_row_is_scikit_learns() -> None:
    X, entities = ring(2, 1)
    detector = EntityForestDetector(n_estimators=5, calibration=0.0, random_state=0).fit(X, entities)
    expected = IsolationForest(n_estimators=5, max_samples=1).fit(X[:1]).score_samples(X)
    np.testing.assert_allclose(detector.familiarity(X)[:, 0], expected)


@pytest.mark.parametrize(
    "detector",
    [
        EntityGaussianDetector(epochs=40, embedding="learned", seed_entities=6, lr=3e-3),
        EntityFlowDetector(epochs=30, embedding="learned", seed_entities=6, condition="prior", n_layers=3, lr=3e-3),
        EntityFlowDetector(epochs=30, condition="affine", n_layers=2, hidden=(32,), lr=1e-2),
        EntityFlowDetector(epochs=30, n_layers=2, hidden=(32,), lr=3e-3),
        SeparateFlowDetector(epochs=40, n_layers=2, hidden=(16,), lr=1e-2),
        EntitySVDDDetector(epochs=30),
        EntityForestDetector(n_estimators=30),
        EntityContrastiveDetector(epochs=10, hidden=(32,)),
    ],
    ids=[
        "gaussian",
        "flow by its prior",
        "flow, affine",
        "flow, own",
        "separate flow",
        "svdd",
        "forest",
        "contrastive",
    ],
)
def test_every_rival_tells_own_rows_from_others(detector: EntityGaussianDetector) -> None:
    X, entities = ring(6, 60)
    detector.set_params(calibration=0.0, random_state=0).fit(X, entities)
    fresh, ids = ring(6, 30, seed=2)
    novelty = -detector.familiarity(fresh)
    scores = [auroc(normal=novelty[ids == t, t], novel=novelty[ids != t, t]) for t in range(6)]
    assert np.mean(scores) > 0.75
