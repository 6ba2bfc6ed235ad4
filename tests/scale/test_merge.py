"""Merging shards equals one fit, and the promise holds for the merged model."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.covariance import LedoitWolf, ledoit_wolf_shrinkage

import offmap
from offmap.calibration.split import hold_out
from offmap.collaborative import ClosedFormDetector
from offmap.density import ECODDetector, MahalanobisDetector, NearestNeighborDetector
from offmap.density.moments import Moments
from offmap.openset import AnalyticClassifier
from offmap.scale import merge


def correlated(rows: int, features: int = 4, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(99).normal(size=(features, features))
    return (rng.normal(size=(rows, features)) ** 3 @ mixing + 7).astype(np.float32)


def many_entities(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    entities = rng.integers(40, size=rows)
    X = rng.normal(size=(rows, 2)) + np.stack([np.cos(entities), np.sin(entities)], axis=1) * 3
    return X.astype(np.float32), entities


@settings(max_examples=25)
@given(seed=st.integers(0, 99), sizes=st.lists(st.integers(1, 30), min_size=1, max_size=5), features=st.integers(1, 6))
def test_moments_of_parts_are_those_of_all_rows(seed: int, sizes: list[int], features: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(size, features)) * rng.uniform(0.1, 5) + rng.normal(size=features) for size in sizes]
    first, *rest = map(Moments.of, parts)
    joined, whole = first.joined(*rest), np.concatenate(parts)
    deviations = whole - whole.mean(axis=0)
    for i in range(features):
        for j in range(features):
            y, z = deviations[:, i], deviations[:, j]
            assert joined.second[i, j] == pytest.approx(sum(y * z), rel=1e-9, abs=1e-9)
            assert joined.third[i, j] == pytest.approx(sum(y**2 * z), rel=1e-9, abs=1e-7)
            assert joined.fourth[i, j] == pytest.approx(sum(y**2 * z**2), rel=1e-9, abs=1e-7)
    scale = rng.uniform(0.5, 2, size=features)
    expected = ledoit_wolf_shrinkage(deviations / scale, assume_centered=True) if len(whole) > 1 else 1.0
    assert joined.shrinkage(scale) == pytest.approx(expected, abs=1e-7)


def test_merged_statistics_are_those_of_one_fit() -> None:
    X, fresh = correlated(4000), correlated(500, seed=1)
    shards = [MahalanobisDetector(random_state=0).fit_shard(part) for part in np.split(X, [200, 1100, 1400])]
    one = MahalanobisDetector(random_state=0).fit_shard(X)
    merged = merge(shards, fresh)
    np.testing.assert_allclose(merged.novelty(fresh), merge([one], fresh).novelty(fresh), rtol=1e-6)
    mean, scale = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    covariance = LedoitWolf(assume_centered=True).fit((X - mean) / scale)
    np.testing.assert_allclose(merged.novelty(fresh), covariance.mahalanobis((fresh - mean) / scale), rtol=1e-4)
    np.testing.assert_array_equal(merged.calibration_novelty_, np.sort(merged.novelty(fresh)))


def test_merged_neighbours_are_those_of_one_fit() -> None:
    X, fresh = correlated(900), correlated(300, seed=1)
    shards = [NearestNeighborDetector(random_state=0).fit(part) for part in np.split(X, 3)]
    merged = merge(shards, fresh)
    kept = [part[hold_out(np.zeros(300, np.int64), 0.1, np.random.default_rng(0)).train] for part in np.split(X, 3)]
    rows = np.concatenate(kept).astype(np.float64)
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    among = np.sort(cdist(rows / scale, rows / scale), axis=1)[:, 1:4].mean()
    naive = np.sort(cdist((fresh - mean) / scale, (rows - mean) / scale), axis=1)[:, :3].mean(axis=1) / among
    np.testing.assert_allclose(merged.novelty(fresh), naive, rtol=1e-5)


@pytest.mark.parametrize("features", ["fourier", "pca"])
def test_eight_shards_of_the_closed_form_equal_one_fit(features: Literal["fourier", "pca"]) -> None:
    X, entities = many_entities(4000)
    fresh, theirs = many_entities(600, seed=1)
    first = ClosedFormDetector(features=features, calibration=0.0, random_state=0).fit(X[:500], entities[:500])
    order = np.random.default_rng(0).permutation(len(X))
    # Of very different sizes; an entity has rows in several shards, and some shards lack some entities.
    parts = np.split(order, [25, 60, 400, 900, 1700, 2300, 3900])
    merged = merge([first.fit_shard(X[part], entities[part]) for part in parts], fresh, theirs)
    one = merge([first.fit_shard(X, entities)], fresh, theirs)
    np.testing.assert_allclose(merged.novelty(fresh, theirs), one.novelty(fresh, theirs), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(merged.familiarity(fresh), one.familiarity(fresh), rtol=1e-6, atol=2e-6)
    np.testing.assert_array_equal(merged.entity_counts_, np.bincount(entities))


def test_a_shard_may_be_one_row_and_no_shard_may_be_empty() -> None:
    X, entities = many_entities(1000)
    fresh, theirs = many_entities(200, seed=1)
    first = ClosedFormDetector(features="fourier", calibration=0.0, random_state=0).fit(X[:500], entities[:500])
    merged, one = (
        merge([first.fit_shard(X[part], entities[part]) for part in np.split(np.arange(1000), cuts)], fresh, theirs)
        for cuts in ([1, 2], [])
    )
    np.testing.assert_allclose(merged.novelty(fresh, theirs), one.novelty(fresh, theirs), rtol=1e-6, atol=1e-6)
    with pytest.raises(ValueError, match="0 sample"):
        first.fit_shard(X[:0], entities[:0])
    with pytest.raises(ValueError, match="0 sample"):
        MahalanobisDetector().fit_shard(X[:0])


def test_one_shard_of_the_rows_of_a_fit_scores_as_that_fit() -> None:
    X, entities = many_entities(1500)
    fitted = ClosedFormDetector(features="fourier", calibration=0.0, random_state=0).fit(X, entities)
    shard = fitted.fit_shard(X, entities)
    np.testing.assert_allclose(shard.raw_novelty(X, entities), fitted.raw_novelty(X, entities), rtol=1e-3, atol=1e-4)


def digits_like(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=rows)
    return (rng.normal(size=(rows, 5)) + 4 * np.eye(5)[y]).astype(np.float32), y


def test_merged_classifiers_equal_one_fit_and_keep_their_held_out_rows() -> None:
    X, y = digits_like(1200, 0)
    fresh, _ = digits_like(200, 1)
    first = AnalyticClassifier(width=60, random_state=0).fit(X[:200], y[:200])
    # One shard lacks a class, and one brings a new class.
    y[1000:] = np.where(y[1000:] == 3, 7, y[1000:])
    shards = [first.fit_shard(X[part], y[part]) for part in (np.flatnonzero(y[:600] != 1), np.arange(600, 1200))]
    merged = merge(shards)
    assert merged.classes_.tolist() == [0, 1, 2, 3, 7]
    codes = np.searchsorted(merged.classes_, merged.row_labels_)
    one = first.network_.emptied().place_classes(5, np.arange(4))
    one.add(torch.from_numpy(merged.rows_), torch.from_numpy(codes)).solve(first.penalty)
    rows = torch.from_numpy(fresh)
    for found, expected in zip(merged.network_(rows), one(rows), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(merged.calibration_novelty_, np.sort(merged.novelty(merged.held_out_rows_)))
    assert len(merged.held_out_rows_) == sum(len(shard.held_out_rows_) for shard in shards) > 80


def test_the_promised_rate_holds_for_merged_models() -> None:
    normal = correlated(40_000, seed=5)
    fresh, test = normal[:1000], normal[20_000:]
    shards = [MahalanobisDetector(alpha=0.1, random_state=0).fit_shard(part) for part in np.split(normal[1000:2000], 8)]
    merged = merge(shards, fresh)
    assert 0.07 < (merged.predict(test) == -1).mean() < 0.13
    # What the shards measured would not do: small shards have far too wide a rate.
    pooled = np.concatenate([shard.calibration_novelty_ for shard in shards])
    assert len(pooled) < len(merged.calibration_novelty_)
    X, y = digits_like(6000, 5)
    first = AnalyticClassifier(width=60, alpha=0.1, calibration=0.3, random_state=0).fit(X[:200], y[:200])
    classifier = merge([first.fit_shard(X[part], y[part]) for part in np.split(np.arange(200, 3000), 8)])
    assert 0.07 < classifier.assess(X[3000:]).novel.mean() < 0.13


def test_the_promised_rate_holds_for_merged_entities() -> None:
    X, entities = many_entities(12_000, seed=3)
    fit, calibration, test = np.split(np.arange(12_000), [4000, 6000])
    first = ClosedFormDetector(features="fourier", alpha=0.1, random_state=0).fit(X[fit[:800]], entities[fit[:800]])
    shards = [first.fit_shard(X[part], entities[part]) for part in np.split(fit, 4)]
    with pytest.raises(ValueError, match="predict needs held-out rows"):
        shards[0].predict(X[:5], entities[:5])
    merged = merge(shards, X[calibration], entities[calibration])
    assert 0.08 < (merged.predict(X[test], entities[test]) == -1).mean() < 0.12


@pytest.mark.parametrize("kind", ["closed form", "statistics"])
def test_shards_can_be_saved_and_merged_elsewhere(tmp_path: Path, kind: str) -> None:
    X, entities = many_entities(900)
    fresh, theirs = many_entities(100, seed=1)
    if kind == "statistics":
        shards: list[Any] = [MahalanobisDetector(random_state=0).fit_shard(part) for part in np.split(X, 3)]
        rows: tuple[Any, ...] = (fresh,)
    else:
        first = ClosedFormDetector(features="fourier", random_state=0).fit(X, entities)
        shards, rows = [first.fit_shard(X[k::3], entities[k::3]) for k in range(3)], (fresh, theirs)
    for place, shard in enumerate(shards):
        shard.save(tmp_path / f"{place}.safetensors")
    loaded = [offmap.load(tmp_path / f"{place}.safetensors") for place in range(3)]
    np.testing.assert_array_equal(merge(loaded, *rows).novelty(*rows), merge(shards, *rows).novelty(*rows))


def test_what_cannot_be_merged_is_refused() -> None:
    X, y = digits_like(300, 0)
    shard = MahalanobisDetector(random_state=0).fit_shard(X)
    with pytest.raises(ValueError, match="at least one"):
        merge([])
    with pytest.raises(ValueError, match="merge needs X"):
        merge([shard])
    with pytest.raises(ValueError, match="no sum over rows"):
        merge([ECODDetector(random_state=0).fit(X)], X)
    with pytest.raises(ValueError, match=r"models must be of one class; 0 is a Maha.* and 1 a Near"):
        merge([shard, NearestNeighborDetector(random_state=0).fit(X)], X)
    with pytest.raises(ValueError, match=r"same parameters; alpha of models\[1\] differ"):
        merge([shard, MahalanobisDetector(alpha=0.2, random_state=0).fit_shard(X)], X)
    with pytest.raises(ValueError, match="one shape"):
        merge([shard, MahalanobisDetector(random_state=0).fit_shard(X[:, :3])], X)
    with pytest.raises(ValueError, match="fitted by fit_shard"):
        merge([shard, MahalanobisDetector(random_state=0).fit(X)], X)
    apart = [AnalyticClassifier(width=20, random_state=seed).fit(X, y) for seed in range(2)]
    with pytest.raises(ValueError, match="must share their features"):
        merge(apart)
    frames = [pd.DataFrame({"x": X[k:, 0], "kind": np.where(X[k:, 1] > 0, "a", "b")}) for k in (0, 9)]
    encoded = [AnalyticClassifier(width=20, random_state=0).fit(frame, y[-len(frame) :]) for frame in frames]
    with pytest.raises(ValueError, match=r"models\[1\] has another encoder"):
        merge(encoded)
    assert len(merge([encoded[0].fit_shard(frames[0], y), encoded[0]]).rows_) > 500
    first = ClosedFormDetector(features="pca", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="as fit_shard left them"):
        merge([first.fit_shard(X, y).partial_fit(X, y)], X, y)
    several = [ClosedFormDetector(features="pca", random_state=0).fit(X[k:], y[k:]).fit_shard(X, y) for k in (0, 9)]
    with pytest.raises(ValueError, match="must share their features"):
        merge(several, X, y)
