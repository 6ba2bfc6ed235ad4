"""Models of pairs in files equal those of pairs in memory."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import offmap
from offmap.collaborative import ClosedFormDetector, RatioDetector
from offmap.collaborative.pair_training import PairBatches
from offmap.metrics import auroc
from offmap.scale import merge


def pairs(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Items, and which of them belongs to which of 30 entities: each has items on its own side."""
    rng = np.random.default_rng(seed)
    X = np.random.default_rng(7).normal(size=(200, 3)).astype(np.float32)
    entities = rng.integers(30, size=count)
    angles = np.stack([np.cos(entities), np.sin(entities), 0 * entities], axis=1)
    return X, (X @ angles.T + rng.gumbel(size=(200, count))).argmax(axis=0), entities


@pytest.mark.parametrize("calibration", [0.0, 0.1])
def test_pairs_in_files_give_the_model_of_pairs_in_memory(tmp_path: Path, calibration: float) -> None:
    X, rows, entities = pairs(5000)
    ids = np.array([f"shop {entity}" for entity in entities])
    for place, part in enumerate(np.array_split(np.arange(5000), 3)):
        frame = pd.DataFrame({"item": rows[part], "shop": ids[part]})
        frame.to_parquet(tmp_path / f"{place}.parquet", row_group_size=700)
    features = ClosedFormDetector(features="fourier", calibration=calibration, alpha=0.1, random_state=0)
    features = features.fit(X, ids[:1000], rows=rows[:1000])
    model = features.fit_files(tmp_path, entity="shop", row="item", X=X)
    _, fresh, others = pairs(4000, seed=1)
    named = np.array([f"shop {entity}" for entity in others])
    held_out = np.random.default_rng(0).choice(5000, round(5000 * calibration), replace=False)
    kept = np.setdiff1d(np.arange(5000), held_out)
    whole = features.fit_shard(X, ids[kept], rows=rows[kept])
    found, expected = (each.novelty(X, named, rows=fresh) for each in (model, whole))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert len(model.calibration_novelty_) == len(held_out)
    if calibration:
        assert 0.06 < (model.predict(X, named, rows=fresh) == -1).mean() < 0.14


def test_files_may_hold_the_features(tmp_path: Path) -> None:
    X, rows, entities = pairs(2000)
    frame = pd.DataFrame(X[rows], columns=["a", "b", "c"])
    frame.assign(shop=entities).to_parquet(tmp_path / "pairs.parquet", row_group_size=300)
    features = ClosedFormDetector(features="pca", calibration=0.0, random_state=0).fit(frame, entities)
    model, whole = features.fit_files(tmp_path, entity="shop"), features.fit_shard(frame, entities)
    np.testing.assert_allclose(model.novelty(frame, entities), whole.novelty(frame, entities), rtol=1e-4, atol=1e-5)


def test_wrong_files_and_arguments_are_refused(tmp_path: Path) -> None:
    X, rows, entities = pairs(300)
    detector = ClosedFormDetector(features="pca", random_state=0).fit(X, entities, rows=rows)
    pd.DataFrame({"item": rows, "shop": entities}).to_parquet(tmp_path / "pairs.parquet")
    with pytest.raises(ValueError, match="give row and X together"):
        detector.fit_files(tmp_path, entity="shop", row="item")
    with pytest.raises(ValueError, match=r"pairs\.parquet lacks the column 'user'"):
        detector.fit_files(tmp_path, entity="user", row="item", X=X)
    with pytest.raises(ValueError, match="rows must be from 0 to 99"):
        detector.fit_files(tmp_path, entity="shop", row="item", X=X[:100])


@pytest.mark.parametrize("train", [False, True])
def test_a_row_number_that_is_not_whole_is_refused(tmp_path: Path, train: bool) -> None:
    # A column of measurements, named by mistake, was cut to whole numbers: every pair got some row.
    X, rows, entities = pairs(300)
    towers = RatioDetector(head="two_tower", embedding_size=2, epochs=1, random_state=0)
    towers.fit(X, entities, rows=rows)
    write(tmp_path, rows * 0.5, entities, 100)
    with pytest.raises(ValueError, match=r"pairs\.parquet: the column 'item' must hold whole numbers; got \d+\.5"):
        towers.fit_files(tmp_path, entity="shop", row="item", X=X, train=train)
    write(tmp_path, rows.astype(float), entities, 100)
    assert len(towers.fit_files(tmp_path, entity="shop", row="item", X=X, train=train).entity_ids_) == 30


def write(folder: Path, rows: np.ndarray, ids: np.ndarray, group: int) -> None:
    pd.DataFrame({"item": rows, "shop": ids}).to_parquet(folder / "pairs.parquet", row_group_size=group)


@pytest.mark.parametrize("group", [600, 5000])
def test_mixtures_of_pairs_in_files_are_those_of_a_loop_over_all_pairs(tmp_path: Path, group: int) -> None:
    X, rows, entities = pairs(5000)
    write(tmp_path, rows, entities, group)
    first = RatioDetector(embedding_size=4, epochs=3, alpha=0.1, random_state=0)
    first.fit(X, entities[:1500], rows=rows[:1500])
    model = first.fit_files(tmp_path, entity="shop", row="item", X=X)
    held_out = np.random.default_rng(0).choice(5000, 500, replace=False)
    kept = np.setdiff1d(np.arange(5000), held_out)
    features: Any = model.features_.eval()
    head: Any = model.head_
    with torch.no_grad():
        components = features(torch.from_numpy(X)).double().numpy()
        prior, worth = head.prior.softmax(0).double().numpy(), float(head.log_worth.exp())
    for entity in range(30):
        own = components[rows[kept][entities[kept] == entity]]
        shares = (own.sum(axis=0) + worth * prior) / (len(own) + worth)
        familiar = np.log(components @ (shares / prior))
        novelty = model.raw_novelty(X, np.full(len(X), entity))
        np.testing.assert_allclose(novelty, -familiar, rtol=1e-3, atol=1e-4)
    _, fresh, others = pairs(4000, seed=1)
    assert 0.06 < (model.predict(X, others, rows=fresh) == -1).mean() < 0.14
    assert (len(model.calibration_novelty_), model.uncovered_) == (500, [])
    assert len(first.entities_) == 30
    assert first.entity_counts_.sum() < 1500


def test_two_towers_take_pairs_in_files_as_a_stream(tmp_path: Path) -> None:
    X, rows, entities = pairs(3000)
    write(tmp_path, rows, entities, 1000)
    first = RatioDetector(head="two_tower", embedding_size=4, epochs=3, calibration=0.0, random_state=0)
    first.fit(X, 100 + entities[:800], rows=rows[:800])
    model = first.fit_files(tmp_path, entity="shop", row="item", X=X)
    for part in np.split(np.arange(3000), 3):
        first.partial_fit(X, entities[part], rows=rows[part])
    theirs = first.raw_novelty(X, entities, rows=rows)
    np.testing.assert_allclose(model.raw_novelty(X, entities, rows=rows), theirs, rtol=1e-4, atol=1e-5)


def test_levels_are_measured_if_the_features_were_fitted_without_held_out_rows(tmp_path: Path) -> None:
    X, rows, entities = pairs(3000)
    write(tmp_path, rows, entities, 1000)
    first = ClosedFormDetector(features="pca", calibration=0.0, random_state=0).fit(X, entities[:900], rows=rows[:900])
    model = first.set_params(calibration=0.2).fit_files(tmp_path, entity="shop", row="item", X=X)
    assert abs(model.calibration_novelty_.mean()) < 0.3
    assert 0.7 < model.calibration_novelty_.std() < 1.5


def test_embeddings_beside_rows_need_pairs_in_memory(tmp_path: Path) -> None:
    X, rows, entities = pairs(300)
    write(tmp_path, rows, entities, 100)
    detector = RatioDetector(head="concat", epochs=1, random_state=0).fit(X, entities, rows=rows)
    with pytest.raises(ValueError, match='fit_files needs head="mixture" or "two_tower"'):
        detector.fit_files(tmp_path, entity="shop", row="item", X=X)
    with pytest.raises(ValueError, match='train=True needs head="two_tower"'):
        RatioDetector().fit_files(tmp_path, entity="shop", row="item", X=X, train=True)


def test_towers_trained_on_files_are_those_of_the_same_batches_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, rows, entities = pairs(3000)
    ids = np.array([f"shop {entity:02d}" for entity in entities])
    write(tmp_path, rows, ids, 700)
    seen: list[tuple[torch.Tensor, ...]] = []
    original = PairBatches.__iter__

    def noted(batches: PairBatches) -> Any:
        for batch in original(batches):
            seen.append(batch)
            yield batch

    monkeypatch.setattr(PairBatches, "__iter__", noted)
    towers = RatioDetector(head="two_tower", embedding_size=4, epochs=3, patience=None, random_state=0)
    model = towers.fit_files(tmp_path, entity="shop", row="item", X=X, train=True)
    # Of 3,000 pairs 300 are held out and 300 watched; the others come once per epoch.
    steps, given = len(seen) // 3, Counter(zip(rows.tolist(), entities.tolist(), strict=True))
    for epoch in range(3):
        index, codes = (
            torch.cat(part).tolist() for part in zip(*seen[epoch * steps : (epoch + 1) * steps], strict=True)
        )
        came = Counter(zip(index, codes, strict=True))
        assert (came.total(), came <= given) == (2400, True)
    memory = list(seen)
    monkeypatch.setattr(PairBatches, "__iter__", lambda batches: iter([memory.pop(0) for _ in range(len(batches))]))
    again = towers.fit_files(tmp_path, entity="shop", row="item", X=X, train=True)
    assert not memory
    for name, weights in model.features_.state_dict().items():
        torch.testing.assert_close(weights, again.features_.state_dict()[name], rtol=0, atol=0)


def test_towers_trained_on_files_know_their_entities_as_those_trained_in_memory(tmp_path: Path) -> None:
    X, rows, entities = pairs(6000)
    write(tmp_path, rows, entities, 900)
    _, fresh, others = pairs(3000, seed=1)
    towers = RatioDetector(head="two_tower", embedding_size=4, epochs=8, alpha=0.1, random_state=0)
    streamed = towers.fit_files(tmp_path, entity="shop", row="item", X=X, train=True)
    memory = towers.fit(X, entities, rows=rows)
    strangers = (others + 15) % 30
    found = []
    for model in (streamed, memory):
        own, foreign = (model.raw_novelty(X, each, rows=fresh) for each in (others, strangers))
        found.append(auroc(own, foreign))
    assert min(found) > 0.75
    assert abs(found[0] - found[1]) < 0.03
    assert 0.06 < (streamed.predict(X, others, rows=fresh) == -1).mean() < 0.14
    streamed.save(tmp_path / "model.safetensors")
    again = offmap.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.novelty(X, others, rows=fresh), streamed.novelty(X, others, rows=fresh))


def test_models_of_several_folders_merge_into_that_of_all(tmp_path: Path) -> None:
    X, rows, entities = pairs(4000)
    fresh = pairs(1000, seed=1)
    first = ClosedFormDetector(features="fourier", calibration=0.0, random_state=0)
    first.fit(X, entities[:800], rows=rows[:800])
    shards = []
    for place, part in enumerate(np.array_split(np.arange(4000), [300, 1900])):
        (tmp_path / str(place)).mkdir()
        write(tmp_path / str(place), rows[part], entities[part], 700)
        shards.append(first.fit_files(tmp_path / str(place), entity="shop", row="item", X=X))
    merged = merge(shards, X[fresh[1]], fresh[2])
    one = merge([first.fit_files(tmp_path, entity="shop", row="item", X=X)], X[fresh[1]], fresh[2])
    found, expected = (model.novelty(X, fresh[2], rows=fresh[1]) for model in (merged, one))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
