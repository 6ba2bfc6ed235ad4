"""MovieLens-1M as thousands of anomaly-detection tasks: which users are familiar with which film.

A film is a task and a user who rated it is one of its exposures. Films with few exposures or with an audience of all
kinds are left out. Users of the category that a film's audience has most of are nominal, those of the category it has
least of are anomalous, and a detector is judged by how well it tells the two apart among users it was not fitted on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import entr

from offmap.data import load_table
from offmap.metrics import entity_auroc

Ints = NDArray[np.int64]
Protocol = Literal["count", "lift", "viewers"]

FEWEST_EXPOSURES = 100
TEST_SHARE = 0.2
# The seven ages of the data are joined to five: below 25, 25 to 34, 35 to 49, 50 to 55, 56 and above. Of the fifteen
# ways to do so it is the one with as many films as the paper, to within one, on which its numbers can be reached.
AGES = {1: 0, 18: 0, 25: 1, 35: 2, 45: 2, 50: 3, 56: 4}


@dataclass(frozen=True)
class MovieLens:
    """Users, and who was exposed to what.

    Args:
        users: One line a user: the codes of each field.
        rows: The line of ``users`` of each exposure.
        films: The film of each exposure.
        ranks: The place of each exposure in its user's history, from 1; 0 if unknown.
    """

    users: pd.DataFrame
    rows: Ints
    films: Ints
    ranks: Ints

    def labels(self, label: str) -> Ints:
        """The category of each user: ``age`` in five bins, or a field as it is."""
        codes = self.users[label]
        return np.asarray(codes.map(AGES) if label == "age" else codes, dtype=np.int64)

    def counts(self, films: Ints, label: str) -> Ints:
        """How many exposures of each category each film has: films × categories."""
        labels = self.labels(label)
        place = np.searchsorted(films, self.films)
        known = films[np.minimum(place, len(films) - 1)] == self.films
        width = int(labels.max()) + 1
        cells = place[known] * width + labels[self.rows[known]]
        return np.bincount(cells, minlength=len(films) * width).reshape(len(films), width)

    def only(self, chosen: NDArray[np.bool_]) -> "MovieLens":
        """The same users with the chosen exposures."""
        return MovieLens(self.users, self.rows[chosen], self.films[chosen], self.ranks[chosen])


@lru_cache(maxsize=1)
def movielens() -> MovieLens:
    """Reads the data set; a user's id, gender and zip code become codes from 0."""
    users, ratings = load_table("ml1m", "users"), load_table("ml1m", "ratings")
    codes = pd.DataFrame({name: users[name].factorize(sort=True)[0] for name in ("user_id", "gender", "zip")})
    codes = codes.rename(columns={"user_id": "id"}).assign(age=users["age"], occupation=users["occupation"])
    rows = pd.Index(users["user_id"]).get_indexer(ratings["user_id"])
    return MovieLens(codes, rows, ratings["movie_id"].to_numpy(np.int64), ratings["time_rank"].to_numpy(np.int64))


def low_entropy(counts: Ints) -> NDArray[np.bool_]:
    """Marks the half of the films whose audience is the least mixed."""
    entropy = entr(counts / counts.sum(axis=1, keepdims=True)).sum(axis=1)
    marked = np.zeros(len(counts), dtype=bool)
    marked[np.argsort(entropy, kind="stable")[: len(counts) // 2]] = True
    return marked


def often_exposed(data: MovieLens) -> Ints:
    """Films with at least 100 exposures, in order."""
    films, exposures = np.unique(data.films, return_counts=True)
    return films[exposures >= FEWEST_EXPOSURES]


def eligible_films(data: MovieLens, labels: tuple[str, ...] = ("age", "occupation", "gender")) -> Ints:
    """Films that are often exposed and of low entropy in at least one of the labels."""
    films = often_exposed(data)
    return films[np.any([low_entropy(data.counts(films, label)) for label in labels], axis=0)]


def contrast(counts: Ints, population: Ints, protocol: Protocol) -> tuple[Ints, Ints]:
    """The nominal and the anomalous category of each film.

    Args:
        counts: Exposures of each category: films × categories.
        population: Exposures of each category over all films.
        protocol: ``lift`` takes the most over- and under-represented category against the population, which a
            likelihood ratio is about; the others the most and the least frequent one, as the paper.
    """
    weight = counts / population if protocol == "lift" else counts
    return weight.argmax(axis=1), weight.argmin(axis=1)


def true_lift(counts: Ints, population: Ints) -> NDArray[np.float64]:
    """Share of each category in a film's exposures over its share in all: films × categories."""
    return (counts / counts.sum(axis=1, keepdims=True)) / (population / population.sum())


@dataclass(frozen=True)
class Setting:
    """One split of the users, and the films that are the tasks.

    Args:
        data: All users and the exposures of all films.
        films: The films that are tasks, in order.
        test_users: Lines of the users that detectors are judged on; all others are there to learn from.
    """

    data: MovieLens
    films: Ints
    test_users: Ints

    def training(self) -> MovieLens:
        """The exposures of the tasks to the other users."""
        learnt = ~np.isin(self.data.rows, self.test_users)
        return self.data.only(learnt & np.isin(self.data.films, self.films))

    def exposed(self) -> NDArray[np.bool_]:
        """Which test users were exposed to which film: ``test_users`` × ``films``."""
        found = np.zeros((len(self.data.users), len(self.films)), dtype=bool)
        place = np.searchsorted(self.films, self.data.films)
        known = self.films[np.minimum(place, len(self.films) - 1)] == self.data.films
        found[self.data.rows[known], place[known]] = True
        return found[self.test_users]

    def auroc(self, familiarity: NDArray[Any], label: str, protocol: Protocol) -> float:
        """Mean over the films of the AUROC between test users of the nominal and of the anomalous category.

        Args:
            familiarity: Of each test user with each film: ``test_users`` × ``films``.
            label: What makes the categories.
            protocol: How a film's two categories are chosen. With ``viewers``, the most and the least frequent one, and
                of the nominal users only those who were exposed to the film.
        """
        labels = self.data.labels(label)
        population = np.bincount(labels[self.data.rows])
        nominal, anomalous = contrast(self.data.counts(self.films, label), population, protocol)
        tested = labels[self.test_users, None]
        usual = (tested == nominal) & self.exposed() if protocol == "viewers" else tested == nominal
        return float(np.nanmean(entity_auroc(familiarity, usual, tested == anomalous)))

    def aurocs(self, familiarity: NDArray[Any]) -> Mapping[str, float]:
        """Every number of a table: two labels by three protocols, and those exposed to a film against those not."""
        exposed = self.exposed()
        found = {metric: self.auroc(familiarity, *chosen) for metric, chosen in PROTOCOLS.items()}
        return found | {"exposed": float(np.nanmean(entity_auroc(familiarity, exposed, ~exposed)))}


PROTOCOLS: dict[str, tuple[str, Protocol]] = {
    "age": ("age", "count"),
    "occupation": ("occupation", "count"),
    "age, viewers": ("age", "viewers"),
    "occupation, viewers": ("occupation", "viewers"),
    "age, lift": ("age", "lift"),
    "occupation, lift": ("occupation", "lift"),
}
METRICS = (*PROTOCOLS, "exposed")


@lru_cache(maxsize=3)
def setting(seed: int) -> Setting:
    """Users split 8:2 by ``seed``; the films are the same for every seed."""
    data = movielens()
    shuffled = np.random.default_rng(seed).permutation(len(data.users))
    return Setting(data, eligible_films(data), np.sort(shuffled[: round(TEST_SHARE * len(shuffled))]))
