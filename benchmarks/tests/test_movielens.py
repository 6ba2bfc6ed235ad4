"""MovieLens as tasks: who counts as nominal, which films stay, and the numbers that the real data must give."""

import numpy as np
import pandas as pd
import pytest

from offmap.data import DataNotFound
from offmap_bench.movielens import (
    METRICS,
    MovieLens,
    Setting,
    contrast,
    eligible_films,
    low_entropy,
    movielens,
    often_exposed,
    setting,
    true_lift,
)

Counts = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def made_up(users: int = 60, films: int = 8, seed: int = 0) -> MovieLens:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": np.arange(users),
            "gender": rng.integers(2, size=users),
            "age": rng.choice([1, 18, 25, 35, 45, 50, 56], size=users),
            "occupation": rng.integers(4, size=users),
            "zip": rng.integers(9, size=users),
        }
    )
    exposed = rng.random((users, films)) < np.linspace(0.2, 0.9, films)
    rows, columns = exposed.nonzero()
    return MovieLens(frame, rows, 10 * (columns + 1), np.ones(len(rows), dtype=np.int64))


def test_counts_are_those_of_a_loop() -> None:
    data = made_up()
    films = np.array([20, 50, 80])
    labels = data.labels("age")
    for film, counts in zip(films, data.counts(films, "age"), strict=True):
        ages = labels[data.rows[data.films == film]]
        assert counts.tolist() == [int((ages == age).sum()) for age in range(5)]


def test_ages_are_joined_to_five_bins() -> None:
    data = made_up()
    original, joined = data.users["age"].to_numpy(), data.labels("age")
    assert dict(zip(original.tolist(), joined.tolist(), strict=True)) == {
        1: 0,
        18: 0,
        25: 1,
        35: 2,
        45: 2,
        50: 3,
        56: 4,
    }


def test_the_half_with_the_least_mixed_audience_is_marked() -> None:
    counts = np.array([[10, 10, 10], [30, 0, 0], [20, 10, 0], [11, 10, 9]])
    assert low_entropy(counts).tolist() == [False, True, True, False]


def test_count_and_lift_choose_different_categories() -> None:
    """A rare category that comes twice as often as elsewhere is nominal by its lift, and anomalous by its count."""
    counts, population = np.array([[60, 30, 20]]), np.array([600, 500, 100])
    assert [int(one[0]) for one in contrast(counts, population, "count")] == [0, 2]
    assert [int(one[0]) for one in contrast(counts, population, "lift")] == [2, 1]
    np.testing.assert_allclose(true_lift(counts, population), [[12 / 11, 30 / 110 * 12 / 5, 24 / 11]])


def test_viewers_are_the_nominal_users_who_were_exposed() -> None:
    data = made_up()
    split = Setting(data, np.array([30, 60]), np.arange(0, 60, 2))
    pairs = set(zip(data.rows.tolist(), data.films.tolist(), strict=True))
    exposed = np.array([[(user, film) in pairs for film in split.films] for user in split.test_users])
    assert np.array_equal(split.exposed(), exposed)
    scores = np.random.default_rng(1).normal(size=exposed.shape)
    labels, found = data.labels("occupation"), []
    for film, column in enumerate(data.counts(split.films, "occupation")):
        tested = labels[split.test_users]
        usual, other = (tested == column.argmax()) & exposed[:, film], tested == column.argmin()
        own, others = scores[usual, film], scores[other, film]
        found.append((own[:, None] > others).mean())
    assert split.auroc(scores, "occupation", "viewers") == pytest.approx(np.mean(found))
    assert split.aurocs(exposed.astype(float))["exposed"] == 1


def test_the_true_lift_is_right_about_every_film_by_lift_and_may_be_wrong_by_count() -> None:
    data = made_up(users=400)
    split = Setting(data, np.unique(data.films), np.arange(0, 400, 2))
    labels = data.labels("age")
    lift = true_lift(data.counts(split.films, "age"), np.bincount(labels[data.rows]))
    familiarity = lift.T[labels[split.test_users]]
    assert split.auroc(familiarity, "age", "lift") == 1
    assert split.auroc(-familiarity, "age", "lift") == 0
    assert split.auroc(familiarity, "age", "count") < 1
    assert tuple(split.aurocs(familiarity)) == METRICS


def test_nothing_of_the_test_users_is_learnt_from() -> None:
    data = made_up()
    split = Setting(data, np.array([20, 40]), np.arange(12))
    learnt = split.training()
    assert not np.isin(learnt.rows, split.test_users).any()
    assert set(learnt.films.tolist()) == {20, 40}
    assert len(learnt.rows) == int((np.isin(data.films, [20, 40]) & (data.rows >= 12)).sum())


def real() -> MovieLens:
    try:
        return movielens()
    except DataNotFound as error:
        pytest.skip(str(error))


@pytest.mark.data
def test_the_films_are_as_many_as_the_paper_has_to_within_one() -> None:
    data = real()
    assert len(often_exposed(data)) == 2019
    assert len(eligible_films(data)) == 1630
    split = setting(0)
    assert len(split.test_users) == 1208
    assert not np.isin(split.training().rows, split.test_users).any()


def lift_auroc(data: MovieLens, films: Counts, labels: Counts) -> float:
    """Share of the films in which the most frequent category has a higher lift than the least frequent one."""
    width = int(labels.max()) + 1
    places = np.searchsorted(films, data.films)
    known = films[np.minimum(places, len(films) - 1)] == data.films
    cells = places[known] * width + labels[data.rows[known]]
    counts = np.bincount(cells, minlength=len(films) * width).reshape(len(films), width)
    kept = counts[low_entropy(counts)]
    population = np.bincount(labels[data.rows])
    (nominal, anomalous), lift = contrast(kept, population, "count"), true_lift(kept, population)
    place = np.arange(len(kept))
    return float(np.mean(lift[place, nominal] > lift[place, anomalous]))


@pytest.mark.data
def test_even_the_true_lift_is_wrong_about_some_films() -> None:
    data = real()
    films = often_exposed(data)
    seven = np.unique(data.users["age"], return_inverse=True)[1]
    assert lift_auroc(data, films, seven) == pytest.approx(0.996, abs=5e-4)
    assert lift_auroc(data, films, data.labels("occupation")) == pytest.approx(0.910, abs=5e-4)


@pytest.mark.data
def test_the_true_lift_is_just_above_the_papers_best_on_the_films_of_the_tables() -> None:
    data, split = real(), setting(0)
    for label, expected in (("age", 0.8365), ("occupation", 0.8337)):
        labels = data.labels(label)
        lift = true_lift(data.counts(split.films, label), np.bincount(labels[data.rows]))
        assert split.auroc(lift.T[labels[split.test_users]], label, "count") == pytest.approx(expected, abs=1e-3)
