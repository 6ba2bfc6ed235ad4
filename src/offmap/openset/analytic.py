"""Ridge regression on random features: learns a new class by adding to sums, and forgets nothing."""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from offmap.arrays import FloatArray, Rows, to_tensor
from offmap.calibration.classifier_contract import Classification
from offmap.calibration.cv import require_one_model
from offmap.labels import known_classes
from offmap.openset.adapter import fit_scale
from offmap.openset.analytic_network import AnalyticNetwork
from offmap.openset.incremental import IncrementalClassifier
from offmap.parameters import Count, Positive


@final
@dataclass(kw_only=True, eq=False, repr=False)
class AnalyticClassifier(IncrementalClassifier):
    r"""Rejects a row when ridge regression on random features assigns it to no class clearly.

    Rows are projected at random and rectified to features $h$, and the scores $s = B^T h$ with
    $B = (G + \lambda I)^{-1} Q$ are fitted to the corners $e_m$, one per class. $G = \sum h h^T$ and $Q = \sum h e_m^T$
    are sums over rows: learning classes one after another gives the same model as learning them together, and a class
    can be removed exactly. The means of the classes enter both with equal weight, so that a new class of few rows is
    not outvoted by those of many. The novelty is the squared distance to the nearest corner plus the variance of the
    prediction, $\min_m \|s - e_m\|^2 + h^T (G + \lambda I)^{-1} h$. The own rule (``rule="own"``) rejects above 1/2,
    the squared distance at which two corners are equally near. There is no training loop.

    Args:
        width: Number of random features. More are slower and rarely better beyond 3,000.
        penalty: Ridge penalty $\lambda$, as a multiple of the mean diagonal entry of $G$. Raise it if labels are noisy.
        keep_rows: Whether the model keeps its training rows, which ``remove_class`` needs. Switch it off for smaller
            model files.

    Attributes:
        network_: The scaling, the random projection, the sums and the solution.
        rows_: The training rows, empty with ``keep_rows=False``.
        row_labels_: Their classes.
        held_out_rows_: The rows that set the threshold.
        held_out_labels_: Their classes.

    Reference: McDonnell et al., RanPAC: Random Projections and Pre-trained Models for Continual Learning,
    arXiv:2307.02251, equation 9; the novelty is ours.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = AnalyticClassifier(calibration=0.3, random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [7.7, 2.8, 6.7, 2.0]])
        array([ 0,  1, -1])
        >>> classifier.partial_fit(X[y == 2], y[y == 2]).predict([[7.7, 2.8, 6.7, 2.0]])
        array([2])
    """

    own_threshold: ClassVar[float | None] = 0.5

    width: Count = 2000
    penalty: Positive = 0.1
    keep_rows: bool = True

    def _build(self) -> None:
        width = math.prod(self.input_shape_)
        self.network_ = AnalyticNetwork(width, self.width, len(self.classes_)).to(self.device)

    def _fit(self, X: Tensor, y: Tensor) -> None:
        self._build()
        fit_scale(self.network_.scale, X, one_unit=len(self.input_shape_) == 3)
        self.rows_: Rows = np.empty((0, X.shape[1]), np.float32)
        self.row_labels_: NDArray[Any] = self.classes_[:0]
        self._add(X, y)

    def _learn(self, X: Tensor, y: Tensor, old: NDArray[np.intp]) -> None:
        self.network_.place_classes(len(self.classes_), old)
        self._add(X, y)

    def _add(self, X: Tensor, y: Tensor) -> None:
        self.network_.add(X, y).solve(self.penalty)
        if self.keep_rows:
            self.rows_ = np.concatenate([self.rows_, X.cpu().numpy()])
            self.row_labels_ = np.concatenate([self.row_labels_, self.classes_[y.cpu().numpy()]])

    def _row_width(self) -> int:
        return self.width

    def _classify(self, X: Tensor) -> Classification:
        scores, leverage = self.network_(X)
        return Classification((scores / self.network_.variance).softmax(dim=1), _novelty(scores, leverage))

    def left_out_novelty(self, X: Any, y: ArrayLike) -> FloatArray:
        """Novelty of rows that have trained the model, as if each of them had not.

        It is exact for the row, without a new fit, so that labelled rows can both train and set a threshold.

        Args:
            X: Training rows.
            y: Their classes.
        """
        require_one_model(self, "left_out_novelty")
        rows, codes = self._checked(X), self._known_codes(X, y)
        with torch.inference_mode():
            found = self.network_.left_out(to_tensor(rows, self.device), torch.from_numpy(codes).to(self.device))
        return _novelty(*found).double().cpu().numpy()

    def remove_class(self, label: Any) -> Self:
        """Forgets a class: the model is then what it would be if the class had never been learnt."""
        check_is_fitted(self, "promise_")
        require_one_model(self, "remove_class")
        place = self._place_to_remove(label)
        gone = self.row_labels_ == self.classes_[place]
        rows = torch.from_numpy(self.rows_[gone]).to(self.device)
        self._copy_network()
        self.network_.add(rows, torch.full((len(rows),), place, device=self.device), sign=-1.0)
        self.rows_, self.row_labels_ = self.rows_[~gone], self.row_labels_[~gone]
        return self._without_classes(np.array([place]))

    def remove_rows(self, X: Any, y: ArrayLike) -> Self:
        """Forgets rows: the model is then what it would be if they had never been learnt.

        A class that loses its last training row is forgotten as by ``remove_class``, together with its held-out rows.

        Args:
            X: Training rows. With ``keep_rows=False`` nothing can check that they were.
            y: The classes that they were learnt as.
        """
        check_is_fitted(self, "promise_")
        require_one_model(self, "remove_rows")
        rows, codes = self._checked(X), self._known_codes(X, y)
        emptied = self._emptied_without(codes)
        gone = self._places_of(rows, self.classes_[codes]) if self.keep_rows else []
        removed = to_tensor(rows, self.device), torch.from_numpy(codes).to(self.device)
        self._copy_network()
        self.network_.add(*removed, sign=-1.0)
        self.rows_, self.row_labels_ = np.delete(self.rows_, gone, axis=0), np.delete(self.row_labels_, gone)
        return self._without_classes(emptied)

    def _emptied_without(self, codes: NDArray[np.int64]) -> NDArray[np.intp]:
        """The places of the classes that have no training row left if one is taken out for each of ``codes``."""
        lost = np.bincount(codes, minlength=len(self.classes_))
        emptied = np.flatnonzero((lost > 0) & (self.network_.counts.cpu().numpy() - lost < 0.5))
        if len(emptied) and len(self.classes_) - len(emptied) < 2:
            raise ValueError("a classifier needs two classes; these rows are all that is left of one of the last two")
        return emptied

    def _without_classes(self, places: NDArray[np.intp]) -> Self:
        """Solves anew and sets the threshold anew without the classes at ``places``, whose rows are taken out."""
        for place in places[::-1].tolist():
            self.network_.drop_class(place)
        self.network_.solve(self.penalty)
        kept = ~np.isin(self.held_out_labels_, self.classes_[places])
        self.classes_ = np.delete(self.classes_, places)
        self._keep_held_out(self.held_out_rows_[kept], self.held_out_labels_[kept])
        self.calibrate_again()
        return self

    def _places_of(self, rows: Rows, labels: NDArray[Any]) -> list[int]:
        """Where each row is among the training rows, each place once."""
        places: dict[tuple[bytes, Any], list[int]] = {}
        for place, key in enumerate(_keys(self.rows_, self.row_labels_)):
            places.setdefault(key, []).append(place)
        found = []
        for number, key in enumerate(_keys(rows, labels)):
            if not places.get(key):
                raise ValueError(f"row {number} of X was not learnt as {key[1]!r}")
            found.append(places[key].pop())
        return found

    def fit_shard(self, X: Any, y: ArrayLike) -> Self:
        """Returns a model of other rows with the features of this one, for ``offmap.scale.merge``.

        Args:
            X: Rows of a part of the data.
            y: Their classes, known or new.
        """
        check_is_fitted(self, "promise_")
        require_one_model(self, "fit_shard")
        shard = copy(self)
        shard.network_ = self.network_.emptied()
        shard.rows_, shard.row_labels_ = self.rows_[:0], self.row_labels_[:0]
        shard._keep_held_out(self.held_out_rows_[:0], self.held_out_labels_[:0])
        shard.uncovered_ = [str(name) for name in self.classes_]
        shard.__dict__.pop("uncovered_before_", None)
        return shard.partial_fit(X, y)

    def merged_with(self, others: Sequence[Self]) -> Self:
        """The model of the rows of this shard and of others; the held-out rows of all set its threshold."""
        models: list[Self] = [self, *others]
        merged = copy(self)
        if not all(self.network_.shares_features(other.network_) for other in others):
            raise ValueError("models must share their features: fit one model, and the others by its fit_shard")
        merged.classes_ = known_classes(np.concatenate([model._learnt_classes() for model in models]))[0]
        # A class without rows adds nothing, wherever it is placed.
        places = [
            np.searchsorted(merged.classes_, model.classes_).clip(max=len(merged.classes_) - 1) for model in models
        ]
        merged.network_ = self.network_.emptied().place_classes(len(merged.classes_), places[0])
        for model, at in zip(models, places, strict=True):
            merged.network_.add_sums(model.network_, at)
        merged.network_.solve(self.penalty)
        merged.rows_ = np.concatenate([model.rows_ for model in models])
        merged.row_labels_ = np.concatenate([model.row_labels_ for model in models])
        merged._keep_held_out(
            np.concatenate([model.held_out_rows_ for model in models]),
            np.concatenate([model.held_out_labels_ for model in models]),
        )
        merged._leave_recalibration()
        covered = {name for model in models for name in model._covered_classes()}
        merged.uncovered_ = [name for name in map(str, merged.classes_) if name not in covered]
        merged.calibrate_again()
        return merged

    def _learnt_classes(self) -> NDArray[Any]:
        """The classes that have rows; a shard knows others by name only."""
        return self.classes_[self.network_.counts.cpu().numpy() > 0.5]

    def _covered_classes(self) -> set[str]:
        """The classes that have rows and are covered by the held-out ones."""
        return {*map(str, self._learnt_classes())} - {*self._uncovered_by_held_out()}

    def _place_to_remove(self, label: Any) -> int:
        found = np.flatnonzero(self.classes_ == label)
        if not len(found):
            raise ValueError(f"label {label!r} is no class of the model; it has {len(self.classes_)} classes")
        if len(self.classes_) == 2:
            raise ValueError("a classifier needs two classes; the last two cannot be removed")
        if not self.keep_rows:
            raise ValueError("remove_class needs the training rows; fit with keep_rows=True")
        return int(found[0])


def _keys(rows: Rows, labels: NDArray[Any]) -> list[tuple[bytes, Any]]:
    return [(row.tobytes(), label) for row, label in zip(np.asarray(rows, np.float32), labels.tolist(), strict=True)]


def _novelty(scores: Tensor, leverage: Tensor) -> Tensor:
    """The squared distance to the nearest corner, and the variance of the prediction."""
    return scores.square().sum(dim=1) - 2 * scores.amax(dim=1) + 1 + leverage
