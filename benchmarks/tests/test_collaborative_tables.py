"""The tables of collaborative anomaly detection: the paper's numbers in their places, and every row able to run."""

from dataclasses import replace
from math import comb
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from offmap.collaborative.augmentation import RandomCrop
from offmap_bench import cold_start, film_stream
from offmap_bench.image_tasks import Images
from offmap_bench.movielens import MovieLens, Setting
from offmap_bench.tables import (
    collaborative_apart,
    collaborative_images,
    collaborative_movielens,
    collaborative_passes,
    collaborative_pretrained,
    collaborative_stream,
)
from offmap_bench.user_features import UserFeatures

MOVIELENS, VECTORS = collaborative_movielens.TABLES
DIGITS, THINGS, TRANSFER = collaborative_images.TABLES
APART, FEATURES = collaborative_apart.TABLES
AUGMENTED, FIVE, PASSES, LONG_TRANSFER = collaborative_passes.TABLES
PRETRAINED, _, PACE = collaborative_pretrained.TABLES
COLD, STREAM = collaborative_stream.TABLES


def test_printed_numbers_stand_where_the_paper_has_them() -> None:
    assert MOVIELENS.printed["ratio, learned", "behaviour only", "age"] == 80.6
    assert MOVIELENS.printed["ratio, histogram of occupation*", "behaviour only", "occupation"] == 73.4
    assert MOVIELENS.printed["flow", "behaviour only", "occupation"] == 58.3
    assert all(column == "behaviour only" for _, column, _ in MOVIELENS.printed)
    assert DIGITS.printed["random", "k = 5 (252 tasks)", "auroc"] == 86.80
    assert THINGS.printed["learned, 64 seed tasks", "k = 4 (210 tasks)", "auroc"] == 93.45
    assert APART.printed["ratio, apart", "k = 3 (120 tasks)", "auroc"] == 74.35
    assert TRANSFER.printed["k = 2", "CIFAR-10", "n = 5"] == 73.11
    assert TRANSFER.printed["k = 5", "CIFAR-10", "n = 2"] == 91.96
    assert ("k = 3", "CIFAR-10", "n = 3") not in TRANSFER.printed
    assert len(TRANSFER.printed) == 12


@pytest.mark.parametrize("table", [DIGITS, THINGS], ids=lambda table: table.name)
def test_the_profile_paper_augments_images_for_every_ratio(table: Any) -> None:
    assert {table.method(row, "paper").augment for row in table.rows} == {"crop_flip"}
    assert {table.method(row, "cpu").augment for row in table.rows} == {"none"}


def test_the_profile_paper_augments_images_but_not_features_learnt_of_them() -> None:
    assert {TRANSFER.method(row, "paper").augment for row in TRANSFER.rows} == {"crop_flip"}
    for row in ("ratio, apart", "ratio, together", "two towers, together"):
        assert APART.method(row, "paper").ready(0).augment == "crop_flip"
    for row in ("ratio of features, apart", "ratio of features, together"):
        assert APART.method(row, "paper").ready(0).augment == "none"


def short(method: Any) -> Any:
    """The same method with one epoch of training and slim networks."""
    known = method.get_params()
    return method.set_params(
        **{k: v for k, v in {"epochs": 1, "conv_channels": 2, "seed_entities": 4}.items() if k in known}
    )


@pytest.fixture
def films(monkeypatch: pytest.MonkeyPatch) -> Setting:
    """A world of 300 users, young or old, and of 12 films, each for one kind."""
    rng = np.random.default_rng(0)
    crowd = np.arange(300) % 2
    ages = np.where(crowd, rng.choice([35, 50, 56], size=300), rng.choice([1, 25], size=300))
    users = pd.DataFrame({"age": ages, "occupation": rng.integers(3, size=300), "gender": rng.integers(2, size=300)})
    exposed = rng.random((300, 12)) < np.where(crowd[:, None] == np.arange(12) % 2, 0.9, 0.3)
    rows, columns = exposed.nonzero()
    data = MovieLens(users, rows, columns, rng.integers(1, 400, size=len(rows)))
    split = Setting(data, np.arange(12), np.arange(60))
    vectors = (rng.normal(size=(300, 4)) + 2 * crowd[:, None]).astype(np.float32)
    for module in (collaborative_movielens, collaborative_stream, cold_start):
        monkeypatch.setattr(module, "setting", lambda seed: split)
    for module in (collaborative_movielens, collaborative_stream):
        monkeypatch.setattr(module, "user_features", lambda *_: UserFeatures(vectors, 0.5, 1))
    monkeypatch.setattr(collaborative_movielens, "film_vectors", lambda ids: rng.normal(size=(len(ids), 3)))
    return split


@pytest.mark.parametrize("row", MOVIELENS.rows)
def test_rows_of_movielens_run(row: str, films: Setting) -> None:
    contender = MOVIELENS.method(row, "cpu")
    short(contender.detector)
    found = collaborative_movielens.measure(contender, "behaviour only", 0)
    assert set(found) == set(MOVIELENS.metrics)
    assert all(0 <= value <= 1 for value in found.values())


def test_categories_are_read_as_they_are(films: Setting) -> None:
    rows = collaborative_movielens.user_rows(films.data, "categories themselves")
    assert rows.shape == (300, 2 + 5 + 3)
    assert (rows.sum(axis=1) == 3).all()
    assert np.array_equal(rows[:, 2:7], collaborative_movielens.user_rows(films.data, "age alone"))
    contender = VECTORS.method("closed form, principal components", "cpu")
    assert collaborative_movielens.measure(contender, "age alone", 0)["age, lift"] > 0.8


def test_the_likelihood_ratio_knows_the_audience_of_a_film(films: Setting) -> None:
    contender = MOVIELENS.method("two towers, learned", "cpu")
    contender.detector.set_params(epochs=30, batch_size=64)
    assert collaborative_movielens.measure(contender, "behaviour only", 0)["age, lift"] > 0.9


def bright_or_dark(count: int) -> Images:
    """So many training images whose brightness is their class."""
    rng = np.random.default_rng(0)

    def drawn(count: int) -> tuple[Any, Any]:
        y = rng.permutation(np.arange(count) % 10)
        return (25 * y[:, None, None] + rng.integers(20, size=(count, 32, 32))).astype(np.uint8), y

    return Images(*drawn(count), *drawn(40))


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> Images:
    """Images whose brightness is their class."""
    data = bright_or_dark(800)
    for module in (collaborative_images, collaborative_apart, cold_start):
        monkeypatch.setattr(module, "images", lambda name: data)
    return data


@pytest.mark.parametrize("row", DIGITS.rows)
def test_rows_of_image_tables_run(row: str, pictures: Images) -> None:
    found = DIGITS.measure(short(DIGITS.method(row, "cpu")), "k = 2 (45 tasks)", 0)
    assert 0 <= found["auroc"] <= 1


@pytest.mark.parametrize("row", APART.rows)
def test_rows_apart_and_together_run(row: str, pictures: Images, monkeypatch: pytest.MonkeyPatch) -> None:
    contender = replace(APART.method(row, "cpu"), epochs=1, conv_channels=2)
    flat = Images(pictures.X[:, 0, :6], pictures.y, pictures.X_test[:, 0, :6], pictures.y_test)
    monkeypatch.setattr(collaborative_apart, "features", lambda: flat)
    assert 0 <= APART.measure(contender, "k = 1 (10 tasks)", 0)["auroc"] <= 1


def test_features_are_learnt_by_contrast_and_tell_bright_from_dark(
    pictures: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collaborative_apart, "FEATURES_OF", 2)
    monkeypatch.setattr(collaborative_apart, "FEATURE_EPOCHS", 2)
    collaborative_apart.features.cache_clear()
    found = collaborative_apart.features()
    collaborative_apart.features.cache_clear()
    assert found.X.shape == (800, 16)
    model = LogisticRegression(max_iter=3000).fit(found.X, found.y < 5)
    assert model.score(found.X_test, found.y_test < 5) > 0.9


def test_tasks_of_another_kind_are_judged_by_embeddings_alone(
    pictures: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collaborative_images, "KINDS", (1, 2))
    trained = collaborative_images.Trained(2, conv_channels=2, epochs=1)
    found = collaborative_images.measure_transfer(trained, "CIFAR-10", 0)
    assert set(found) == {"n = 1", "n = 2"}
    assert all(0 <= value <= 1 for value in found.values())


@pytest.mark.parametrize("column", PASSES.columns)
def test_a_detector_is_trained_as_the_column_of_passes_says(column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collaborative_passes, "images", lambda name: bright_or_dark(800))
    how = collaborative_passes.COLUMNS[column]
    assert how.passes == (40 if "40 passes" in column else 20)
    monkeypatch.setitem(collaborative_passes.COLUMNS, column, replace(how, passes=1))
    detector = short(PASSES.method("label*", "cpu"))
    assert 0 <= PASSES.measure(detector, column, 0)["auroc"] <= 1
    assert any(isinstance(part, RandomCrop) for part in detector.features_.modules()) == ("augmented" in column)
    assert detector.conv_channels == (1 if "half the width" in column else 2)
    assert len(detector.entity_ids_) == comb(10, 2)
    assert detector.entity_counts_.sum() == (400 if "half the images" in column else 800)


def test_rows_of_augmented_passes_are_those_of_the_papers_table_but_for_the_passes() -> None:
    assert AUGMENTED.measure is PASSES.measure
    assert set(AUGMENTED.columns) < set(PASSES.columns)
    assert all(collaborative_passes.COLUMNS[column].augment == "crop_flip" for column in AUGMENTED.columns)
    assert {*AUGMENTED.rows, *PASSES.rows} == {"label*", "learned, 64 seed tasks", "pseudo-label", "random"}


def test_augmented_passes_over_tasks_of_five_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collaborative_passes, "images", lambda name: bright_or_dark(4000))
    (column,) = FIVE.columns
    how = collaborative_passes.FIVE[column]
    assert (how.passes, how.augment) == (20, "crop_flip")
    assert all(
        FIVE.printed[row, column, "auroc"] == THINGS.printed[row, "k = 5 (252 tasks)", "auroc"] for row in FIVE.rows
    )
    monkeypatch.setitem(collaborative_passes.FIVE, column, replace(how, passes=1))
    detector = short(FIVE.method("label*", "cpu"))
    assert 0 <= FIVE.measure(detector, column, 0)["auroc"] <= 1
    assert len(detector.entity_ids_) == comb(10, 5)


def random_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random numbers in place of the features of the network, which only the benchmark installs."""
    rng, data = np.random.default_rng(0), bright_or_dark(400)
    X, X_test = (rng.normal(size=(len(images), 8)).astype(np.float32) for images in (data.X, data.X_test))
    made = Images(X, data.y, X_test, data.y_test)
    monkeypatch.setattr(collaborative_pretrained, "pretrained_features", lambda: made)


@pytest.mark.parametrize("row", PRETRAINED.rows)
def test_rows_of_pretrained_features_are_those_of_table_2(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random_features(monkeypatch)
    assert PRETRAINED.rows[row] == APART.rows[row]
    column = PRETRAINED.columns[0]
    assert PRETRAINED.printed[row, column, "auroc"] == APART.printed[row, column, "auroc"]
    assert 0 <= PRETRAINED.measure(replace(PRETRAINED.rows[row], passes=1), column, 0)["auroc"] <= 1


@pytest.mark.parametrize("row", PACE.rows)
def test_rows_of_more_pace_change_one_thing(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random_features(monkeypatch)
    base = APART.rows["flow of features, apart" if "flow" in row else "ratio of features, together"]
    first, second = ({**vars(each), **each.detector.get_params()} for each in (PACE.rows[row], base))
    # What `ready` sets is not of the row.
    own = first.keys() - {"detector", "conv_channels", "epochs", "patience", "random_state"}
    changed = {name for name in own if first[name] != second[name]}
    assert changed in ({"embedding_lr_factor"}, {"passes"}, {"head", "embedding_decay", "embedding_lr_factor"})
    assert 0 <= PACE.measure(replace(PACE.rows[row], passes=1), "k = 1 (10 tasks)", 0)["auroc"] <= 1


def test_transfer_after_more_passes_is_augmented(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[Any] = []
    monkeypatch.setattr(collaborative_passes, "measure_transfer", lambda how, *_: trained.append(how))
    (column,) = LONG_TRANSFER.columns
    LONG_TRANSFER.measure(LONG_TRANSFER.method("k = 2", "cpu"), column, 0)
    assert [(how.k, how.epochs, how.augment) for how in trained] == [(2, 20, "crop_flip")]


@pytest.mark.parametrize("row", COLD.rows)
def test_rows_of_the_cold_start_run(
    row: str, films: Setting, pictures: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cold_start, "EXPOSURES", (1, 3))
    monkeypatch.setattr(cold_start, "COLD_FILMS", 3)
    monkeypatch.setattr(cold_start, "COLD_CLASSES", 4)
    for column in COLD.columns:
        found = COLD.measure(short(COLD.method(row, "cpu")), column, 0)
        assert list(found) == ["seen, 1", "seen, 3", "unseen, 1", "unseen, 3"]


@pytest.mark.parametrize("row", STREAM.rows)
def test_rows_of_the_stream_run(row: str, films: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(film_stream, "ENOUGH", 8)
    follower = STREAM.method(row, "cpu")
    short(follower.detector)
    found = STREAM.measure(follower, "MovieLens-1M", 0)
    assert set(found) == set(STREAM.metrics)
