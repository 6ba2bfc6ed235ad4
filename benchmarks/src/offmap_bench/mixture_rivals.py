"""Plain rivals of collaborative detectors: pooled Gaussian components with shares per entity, and nearest rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors

Matrix = NDArray[np.float64]
# Rounds in which the shares of an entity, and the components of its rows, follow from each other.
_ROUNDS = 20


def shares_of(log_likely: Matrix, prior: Matrix, worth: float) -> Matrix:
    """The shares of components in the rows of an entity.

    Args:
        log_likely: Log density of each row under each component.
        prior: Shares of the components among all rows.
        worth: Rows that the prior counts as.
    """
    shares = prior
    for _ in range(_ROUNDS):
        joint = log_likely + np.log(shares)
        responsible = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        shares = (responsible.sum(axis=0) + worth * prior) / (len(log_likely) + worth)
    return shares


@dataclass
class PooledMixture:
    """A Gaussian mixture of all rows, and how often an entity shows each component.

    Args:
        components: Numbers of components to choose from, by BIC.
        worth: Rows that the shares of all entities count as in those of one.
        centres: Means of the components, with identity covariance and equal shares, if they are known.
    """

    components: tuple[int, ...] = (8, 16, 32)
    worth: float = 5.0
    centres: Matrix | None = None
    shares: dict[int, Matrix] = field(default_factory=dict, repr=False)

    def fit(self, X: Matrix, entities: NDArray[np.int64], seed: int) -> "PooledMixture":
        """Finds components, unless they are known, and the shares of each entity."""
        if self.centres is None:
            found = [
                GaussianMixture(count, reg_covar=1e-3, n_init=2, random_state=seed).fit(X) for count in self.components
            ]
            self.mixture = min(found, key=lambda mixture: float(mixture.bic(X)))
        for entity in np.unique(entities):
            self.add_entity(int(entity), X[entities == entity])
        return self

    def add_entity(self, entity: int, X: Matrix) -> None:
        """Finds the shares of an entity."""
        self.shares[entity] = shares_of(self._log_likely(X), self._prior(), self.worth)

    def familiarity(self, X: Matrix, entities: NDArray[np.int64]) -> Matrix:
        """The log ratio of every row for every entity."""
        likely = self._log_likely(X)
        scaled = np.exp(likely - likely.max(axis=1, keepdims=True))
        ratio = scaled @ np.stack([self.shares[int(entity)] for entity in entities]).T
        return np.asarray(np.log(ratio + 1e-300) - np.log(scaled @ self._prior())[:, None])

    def _prior(self) -> Matrix:
        if self.centres is None:
            return np.asarray(self.mixture.weights_)
        return np.full(len(self.centres), 1 / len(self.centres))

    def _log_likely(self, X: Matrix) -> Matrix:
        if self.centres is None:
            return np.asarray(self.mixture._estimate_log_prob(X))
        return np.asarray(-0.5 * ((X[:, None] - self.centres) ** 2).sum(axis=2))


@dataclass
class NearestRows:
    """The distance to the nearest rows of the entity itself.

    Args:
        neighbours: How many; the distance is that to the last of them.
    """

    neighbours: int = 5
    tables: dict[int, Any] = field(default_factory=dict, repr=False)

    def fit(self, X: Matrix, entities: NDArray[np.int64], seed: int) -> "NearestRows":
        """Keeps the rows of each entity."""
        self.scale = X.std(axis=0) + 1e-9
        for entity in np.unique(entities):
            self.add_entity(int(entity), X[entities == entity])
        return self

    def add_entity(self, entity: int, X: Matrix) -> None:
        """Keeps the rows of an entity."""
        self.tables[entity] = NearestNeighbors(n_neighbors=min(self.neighbours, len(X))).fit(X / self.scale)

    def familiarity(self, X: Matrix, entities: NDArray[np.int64]) -> Matrix:
        """Minus the distance of every row for every entity."""
        found = [self.tables[int(entity)].kneighbors(X / self.scale)[0][:, -1] for entity in entities]
        return -np.stack(found, axis=1)


@dataclass(frozen=True)
class Rival:
    """A plain rival with its settings; ``make`` gives a new one, as a detector is cloned."""

    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def make(self, **more: Any) -> PooledMixture | NearestRows:
        """A new rival."""
        classes: dict[str, Any] = {"mixture": PooledMixture, "nearest": NearestRows}
        rival: PooledMixture | NearestRows = classes[self.kind](**self.settings, **more)
        return rival
