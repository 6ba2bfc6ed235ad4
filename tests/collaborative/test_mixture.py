"""Mixtures of shared components: the ratio, the loss of an episode, streams, and what the default is good for."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from offmap.collaborative import RatioDetector, SeparateGaussianDetector, ratio
from offmap.collaborative.episodes import Episodes, Repeated, episode_loss, fit_components
from offmap.collaborative.mixture import MixtureHead
from offmap.collaborative.observations import Observations
from offmap.metrics import entity_auroc
from offmap.train import History
from tests.collaborative.problems import ring
from tests.collaborative.test_ratio import digit_entities, mean_auc


def random_head(components: int, seed: int) -> MixtureHead:
    torch.manual_seed(seed)
    head = MixtureHead(components)
    with torch.no_grad():
        head.prior.normal_()
        head.log_worth.normal_()
    return head


@settings(deadline=None, max_examples=20)
@given(components=st.integers(2, 6), rows=st.integers(1, 9), seed=st.integers(0, 99))
def test_the_score_is_the_ratio_of_two_mixtures(components: int, rows: int, seed: int) -> None:
    head = random_head(components, seed).requires_grad_(False)
    own, asked = torch.rand(rows, components).softmax(dim=1), torch.rand(3, components).softmax(dim=1)
    embedding = head.embeddings(own.sum(dim=0, keepdim=True), torch.tensor([rows]))
    prior, worth = head.prior.softmax(dim=0).tolist(), float(head.log_worth.exp())
    shares = [(float(own[:, k].sum()) + worth * prior[k]) / (rows + worth) for k in range(components)]
    assert sum(shares) == pytest.approx(1.0, abs=1e-5)
    # By Bayes the density of a component is ψ_k(x) p(x) / π_k; p(x) cancels.
    for row, found in zip(asked, head.score_all(asked, embedding)[:, 0], strict=True):
        ratio = sum(share * float(p) / q for share, p, q in zip(shares, row, prior, strict=True))
        assert float(found) == pytest.approx(np.log(ratio), abs=1e-4)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 99))
def test_the_loss_of_episodes_is_that_of_a_loop_over_rows(seed: int) -> None:
    head, rng = random_head(4, seed).requires_grad_(False), np.random.default_rng(seed)
    episodes = np.sort(np.concatenate([np.arange(4), rng.integers(4, size=8)]))
    owner = np.array([0, 1, 1, 2])
    features = torch.from_numpy(rng.dirichlet(np.ones(4), size=12)).float()
    own, others, again = [], [], []
    shares = torch.tensor([0.5, 0.2, 0.3])
    for i, row in enumerate(features):
        rest = [j for j in range(12) if episodes[j] == episodes[i] and j != i]
        embedding = head.embeddings(features[rest].sum(dim=0, keepdim=True), torch.tensor([len(rest)]))
        own.append(np.log1p(np.exp(-float(head(row, embedding)[0]))))
        again.append(float(shares[owner[episodes[i]]]))
        again[-1] *= np.log1p(np.exp(float(head(row, embedding)[0])))
        for episode in range(4):
            if owner[episode] != owner[episodes[i]]:
                members = features[episodes == episode]
                embedding = head.embeddings(members.sum(dim=0, keepdim=True), torch.tensor([len(members)]))
                others.append(np.log1p(np.exp(float(head(row, embedding)[0]))))
    entities = torch.from_numpy(owner[episodes])
    found = episode_loss(head, features, entities, torch.from_numpy(episodes), shares)
    elsewhere = 1 - float(shares[entities].mean())
    assert float(found) == pytest.approx(np.mean(own) + np.mean(again) + elsewhere * np.mean(others), abs=1e-4)


@settings(deadline=None, max_examples=20)
@given(counts=st.lists(st.integers(1, 90), min_size=2, max_size=8), size=st.integers(2, 200), seed=st.integers(0, 99))
def test_an_epoch_of_episodes_holds_every_observation_once(counts: list[int], size: int, seed: int) -> None:
    torch.manual_seed(seed)
    entities = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    entities = entities[torch.randperm(len(entities))]
    observed = Observations(torch.zeros(len(entities), 1), torch.arange(len(entities)), entities)
    batches = list(Episodes(observed, size))
    assert len(batches) == len(Episodes(observed, size))
    assert torch.equal(torch.cat([index for index, _, _ in batches]).sort().values, torch.arange(len(entities)))
    for index, owner, episode in batches:
        assert torch.equal(owner, entities[index])
        assert torch.equal(episode.unique(), torch.arange(int(episode.max()) + 1))
        for one in episode.unique():
            assert len(owner[episode == one].unique()) == 1
            assert int((episode == one).sum()) <= 32


def test_episodes_are_new_groups_of_rows_in_each_epoch_and_few_rows_are_passed_over_more_than_once() -> None:
    torch.manual_seed(0)
    entities = torch.repeat_interleave(torch.arange(3), 90)
    episodes = Episodes(Observations(torch.zeros(270, 1), torch.arange(270), entities), 100)

    def groups() -> set[frozenset[int]]:
        return {frozenset(rows[of == one].tolist()) for rows, _, of in episodes for one in of.unique()}

    assert len(groups()) == 9
    assert not groups() & groups()
    assert len(episodes) == 3
    for least, batches in ((1, 3), (3, 3), (4, 6), (7, 9)):
        repeated = Repeated(episodes, least)
        assert len(list(repeated)) == len(repeated) == batches
        seen = torch.cat([rows for rows, _, _ in repeated]).bincount()
        assert (seen == batches // 3).all()


def test_a_small_table_is_learnt_as_well_as_by_one_gaussian_per_entity() -> None:
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        centres, entities = 2 * rng.normal(size=(20, 5)), np.repeat(np.arange(20), 10)
        X, fresh = (centres[entities] + rng.normal(size=(200, 5)) for _ in range(2))
        own = entities[:, None] == np.arange(20)
        models = [cls(calibration=0.0, random_state=seed) for cls in (RatioDetector, SeparateGaussianDetector)]
        found.append([entity_auroc(model.fit(X, entities).familiarity(fresh), own, ~own).mean() for model in models])
    default, plain = np.mean(found, axis=0)
    assert default > plain - 0.02


def test_columns_may_have_any_units() -> None:
    X, entities = ring(6, 40)
    settings: dict[str, Any] = {"epochs": 5, "calibration": 0.0, "random_state": 0}
    plain = RatioDetector(**settings).fit(X, entities).familiarity(X)
    other = RatioDetector(**settings).fit(1e3 * X + [0, 50], entities).familiarity(1e3 * X + [0, 50])
    np.testing.assert_allclose(plain, other, atol=0.02)


def test_rows_that_say_when_to_stop_are_not_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    X, entities = ring()
    seen: list[set[int]] = []

    def spied(*given: Any) -> History:
        seen.extend(set(part.index.tolist()) for part in given if isinstance(part, Observations))
        return fit_components(*given)

    monkeypatch.setattr(ratio, "fit_components", spied)
    RatioDetector(epochs=1, calibration=0.0, random_state=0).fit(X, entities)
    training, validation = seen
    assert not training & validation
    assert (len(training), len(training | validation)) == (162, 180)


def test_dropout_stands_after_each_hidden_layer() -> None:
    X, entities = ring()
    detector = RatioDetector(dropout=(0.5, 0.2), epochs=1, calibration=0.0, random_state=0).fit(X, entities)
    assert [layer.p for layer in detector.features_.modules() if isinstance(layer, torch.nn.Dropout)] == [0.5, 0.2]


def test_a_stream_ends_where_one_batch_would_and_known_entities_are_found_as_new_ones() -> None:
    X, entities = ring(8, 60)
    detector = RatioDetector(epochs=5, calibration=0.0, random_state=0).fit(X, entities)
    own = ring(2, 40, seed=1)[0][:40]
    piecewise = copy.deepcopy(detector)
    for rows in np.split(own, 8):
        piecewise.partial_fit(rows, [99] * 5)
    detector.add_entity(99, own)
    np.testing.assert_allclose(piecewise.entity_embeddings_[-1], detector.entity_embeddings_[-1], rtol=1e-4)
    detector.add_entity(100, X[entities == 3])
    np.testing.assert_allclose(detector.entity_embeddings_[-1], detector.entity_embeddings_[3], rtol=1e-4)


def mixtures(entities: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Entities with shares of six Gaussians, 40 rows each: the centres, the rows and their entities."""
    rng = np.random.default_rng(seed)
    centres, shares = 2 * rng.normal(size=(6, 4)), rng.dirichlet(np.full(6, 0.25), size=entities)
    kinds = np.concatenate([rng.choice(6, size=40, p=share) for share in shares])
    return centres, centres[kinds] + rng.normal(size=(len(kinds), 4)), np.repeat(np.arange(entities), 40)


def test_the_default_comes_close_to_the_true_components_and_new_entities_to_those_that_were_fitted() -> None:
    centres, X, entities = mixtures(100, seed=0)
    train, known = np.tile(np.arange(40) < 20, 100), entities < 70
    detector = RatioDetector(calibration=0.0, random_state=0).fit(X[train & known], entities[train & known])
    detector.partial_fit(X[train & ~known], entities[train & ~known])
    own = entities[~train, None] == np.arange(100)
    found = entity_auroc(detector.familiarity(X[~train]), own, ~own)
    likely = np.exp(-0.5 * ((X[:, None] - centres) ** 2).sum(axis=2))
    responsible = likely / likely.sum(axis=1, keepdims=True)
    shares = (responsible[train].reshape(100, 20, 6).sum(axis=1) + 0.25) / 21.5
    true = entity_auroc(responsible[~train] @ shares.T, own, ~own)
    assert found.mean() > true.mean() - 0.025
    assert found[70:].mean() - found[:70].mean() > true[70:].mean() - true[:70].mean() - 0.03


def test_components_are_found_in_digits_where_searched_embeddings_are_lost() -> None:
    X, y, entities, active = digit_entities()
    train = np.arange(len(y)) % 4 > 0
    found = [
        mean_auc(
            RatioDetector(head=head, calibration=0.0, epochs=30, random_state=0).fit(X[train], entities[train]),
            X[~train], y[~train], active,
        )
        for head in ("mixture", "two_tower")
    ]  # fmt: skip
    assert found[0] > found[1] + 0.08


@pytest.mark.parametrize("sizes", [(270, 30), (150, 150)])
def test_the_rows_of_all_hold_an_entitys_own_by_its_share_and_the_weight_of_the_prior_is_learnt(
    sizes: tuple[int, int],
) -> None:
    """Two entities with nothing in common: the ratio of own rows is the inverse of the entity's share."""
    rng = np.random.default_rng(0)
    centres = np.array([[6.0, 0.0], [-6.0, 0.0]])
    entities = np.repeat([0, 1], sizes)
    X = centres[entities] + rng.normal(size=(300, 2))
    settings: dict[str, Any] = {"epochs": 150, "patience": None, "lr": 1e-2, "calibration": 0.0, "random_state": 0}
    detector = RatioDetector(**settings).fit(X, entities)
    found = detector.familiarity(centres)
    np.testing.assert_allclose(np.diag(found), np.log(300 / np.array(sizes)), atol=0.12)
    assert max(found[0, 1], found[1, 0]) < -2
    # Rows of one entity are all alike: a few of them tell it, whatever the others are.
    assert isinstance(detector.head_, MixtureHead)
    assert float(detector.head_.log_worth.detach().exp()) < 5


@pytest.mark.parametrize("each", [1, 30])
def test_rows_far_beyond_all_rows_are_novel_to_every_entity_and_others_keep_their_ratio(each: int) -> None:
    X, entities = ring(8, 60)
    detector = RatioDetector(epochs=5, random_state=0).fit(X, entities)
    detector.add_entity(99, ring(8, each, seed=1)[0][:each])
    ways = np.random.default_rng(1).normal(size=(50, 2))
    for far in (30.0, 1e4, 1e12):
        out = far * ways / np.linalg.norm(ways, axis=1, keepdims=True)
        for entity in (*range(8), 99):
            assert (detector.predict(out, np.full(50, entity)) == -1).all()
            assert np.isfinite(detector.novelty(out, np.full(50, entity))).all()
    components = detector.features_(torch.from_numpy(1.5 * X).float())
    np.testing.assert_allclose(components.sum(dim=1).detach().numpy(), 1.0, rtol=1e-5)
