"""Simple classifiers that learn classes stage by stage, to compare with."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import SGDClassifier

from offmap.openset import AnalyticClassifier, ANSClassifier


@dataclass
class NearestMean:
    """The class whose mean is nearest; each mean is a sum over the rows of its class."""

    means: dict[Any, NDArray[Any]] = field(default_factory=dict)

    def learn(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        """Adds classes."""
        self.means |= {label: X[y == label].mean(axis=0) for label in np.unique(y)}
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """The class of each row."""
        centres = np.stack(list(self.means.values()))
        away = (centres**2).sum(axis=1) - 2 * X @ centres.T
        return np.array(list(self.means))[away.argmin(axis=1)]


@dataclass
class StreamingLDA:
    """Linear discriminant analysis from sums: class means and one covariance within all classes, shrunk a little."""

    shrinkage: float = 0.1
    means: dict[Any, NDArray[Any]] = field(default_factory=dict)
    scatter: Any = 0.0
    rows: int = 0

    def learn(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        """Adds classes."""
        for label in np.unique(y):
            own = X[y == label].astype(np.float64)
            self.means[label] = own.mean(axis=0)
            self.scatter = self.scatter + (own - self.means[label]).T @ (own - self.means[label])
            self.rows += len(own)
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """The class of each row."""
        centres, within = np.stack(list(self.means.values())), self.scatter / self.rows
        width = len(within)
        within = (1 - self.shrinkage) * within + self.shrinkage * np.trace(within) / width * np.eye(width)
        directions = np.linalg.solve(within, centres.T)
        scores = X @ directions - 0.5 * np.einsum("ij,ji->i", centres, directions)
        return np.array(list(self.means))[scores.argmax(axis=1)]


@dataclass
class Analytic:
    """Random projection and ridge regression; with ``refit`` it is fitted anew on all rows at every stage."""

    refit: bool = False
    seen: list[tuple[NDArray[Any], NDArray[Any]]] = field(default_factory=list)

    def learn(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        """Adds classes."""
        if not self.seen or self.refit:
            self.seen.append((X, y))
            self.model = AnalyticClassifier(rule="own", calibration=0, random_state=0)
            self.model.fit(*(np.concatenate(part) for part in zip(*self.seen, strict=True)))
        else:
            self.model.partial_fit(X, y)
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """The class of each row."""
        return self.model.predict_closed(X)


@dataclass
class Heads:
    """Adaptive negative samples: one head per class, of which only new ones are trained; its labels are analytic."""

    def learn(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        """Adds classes."""
        if not hasattr(self, "model"):
            self.model = ANSClassifier(closed_set="analytic", rule="own", calibration=0, random_state=0)
        self.model.partial_fit(X, y)
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """The class of each row."""
        return self.model.predict_closed(X)


@dataclass
class FineTuned:
    """A softmax layer that goes on training on the rows of each stage alone."""

    classes: NDArray[Any] | None = None
    epochs: int = 20

    def learn(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        """Trains on a stage; the layer has an output for every class from the start."""
        if not hasattr(self, "layer"):
            self.layer = SGDClassifier(loss="log_loss", alpha=1e-4, random_state=0)
        for _ in range(self.epochs):
            self.layer.partial_fit(X, y, classes=self.classes)
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """The class of each row."""
        return self.layer.predict(X)
