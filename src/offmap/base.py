"""The contract that every method obeys: ``Detector`` and ``OpenSetClassifier``.

A method is a dataclass of parameters with two functions to write: ``_fit`` and ``_novelty`` (or ``_classify``).
The held-out rows and the rule of decision are handled here, once; thresholds and p-values come from a ``Promise``,
validation, encoding and saving from ``OpenWorldEstimator``.
"""

import os
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from offmap.arrays import FloatArray, Rows, in_chunks, to_tensor
from offmap.calibration.classifier_contract import Classification, PromisedClassifier
from offmap.calibration.contamination import Contamination, ordinary_rows
from offmap.calibration.contract import PromisedDetector
from offmap.calibration.cv import Folds, fit_members, fold_splits, warn_of_lost_rows
from offmap.calibration.mondrian import ByClass, ClassPromise
from offmap.calibration.notices import warn_of_copies, warn_of_uncovered
from offmap.calibration.split import Split, hold_out, uncovered, uncovered_names
from offmap.distributed import current
from offmap.estimator import OpenWorldEstimator
from offmap.fit_from_disk import fit_from_disk
from offmap.labels import check_classes, check_labels, choose_unknown_label, known_classes
from offmap.parameters import Fraction, Share
from offmap.random_state import draw_seed, local_seed


@dataclass(kw_only=True, eq=False, repr=False)
class Detector(PromisedDetector, OpenWorldEstimator):
    """Learns what normal rows look like and flags those that look different.

    A scikit-learn outlier detector (``predict`` gives +1 for normal and -1 for novel) with ``novelty``, ``p_value``
    and ``assess``.

    Args:
        calibration: Share of the rows held out from training to set the threshold and the p-values. With "cv" every row
            trains and calibrates: one model per fold is fitted (CV+), for data too small to hold rows out.
        folds: Number of folds, and of models, of ``calibration="cv"``.
        contamination: Share of the rows that may be novel themselves; so many of the rows that look most novel to a
            model of other rows are left out before the fit. "auto" leaves out those far beyond the rest.

    Attributes:
        promise_: The ``Promise`` that decides, fitted on the held-out rows.
        threshold_: Rows with a novelty above it are flagged.
        calibration_novelty_: Novelty of the held-out rows, in ascending order.
        input_shape_: Shape of one row.
        history_: Mean of each training term per epoch, by name.
    """

    calibration: Fraction | Literal["cv"] = 0.1
    folds: Folds = 5
    contamination: Contamination = 0.0

    def fit(self, X: Any, y: object = None) -> Self:
        """Learns from normal rows; ``y`` is ignored.

        A ``pathlib.Path`` of a Parquet file, or of a folder of them, is read piece by piece, by methods that train on
        batches: memory does not grow with the number of rows.
        """
        if isinstance(X, os.PathLike):
            fit_from_disk(self, X)
            return self
        rows, rng = self._opened(X)
        if self.contamination:
            X, self.trimmed_ = ordinary_rows(self, X, rng)
            # Without the trimmed rows a table may be one of complete numbers.
            rows = self._unencoded(X)
        groups = np.zeros(len(rows), dtype=np.int64)
        if self.calibration == "cv":
            # Members take what the user gave, as later calls do: validated rows have no names, and may be shifted.
            self.members_ = fit_members(self, X, None, fold_splits(groups, self.folds, rng), rng)
            return self._join_members()
        return self._fit_and_calibrate(rows, hold_out(groups, self.calibration, rng), rng)

    def _opened(self, X: Any) -> tuple[Any, np.random.Generator]:
        rng = self._start()
        rows = self._unencoded(X)
        _require_two(rows)
        return rows, rng

    def _unencoded(self, X: Any) -> Any:
        """Validated rows; what an encoder is fitted to is left as it is."""
        return self._rows(X, reset=True) if self._encoder_for(X) is None else X

    def _fit_split(self, X: Any, y: object, split: Split) -> Self:
        """Trains on some rows and calibrates on others."""
        rows, rng = self._opened(X)
        return self._fit_and_calibrate(rows, split, rng)

    def _fit_and_calibrate(self, X: Any, split: Split, rng: np.random.Generator) -> Self:
        rows = X if self._encoder_for(X) is None else self._encoded(X, None, split.train, rng)
        if rows is X:
            warn_of_copies(rows)
        with local_seed(draw_seed(rng)):
            self._fit(to_tensor(rows[split.train], self.device))
        held_out = rows[split.held_out]
        (novelty,) = current().scored(lambda own: (self._scored(self._novelty, held_out[own]),), len(held_out))
        self.promise_ = self._new_promise().fit(novelty)
        return self

    def novelty(self, X: ArrayLike) -> FloatArray:
        """How novel each row is: higher is more novel, and above ``threshold_`` it is flagged.

        With ``calibration="cv"`` it is the surprise, minus the logarithm of the p-value with its steps filled in.
        """
        if members := self._members():
            return self._surprise([member.novelty(X) for member in members])
        return self._scored(self._novelty, self._checked(X))

    def _scored(self, novelty: Callable[[Tensor], Tensor], rows: Rows) -> FloatArray:
        """Applies ``novelty`` to validated rows, chunk by chunk."""
        (values,) = in_chunks(lambda X: (novelty(X),), rows, self.device, self._row_width())
        return _ordered(values)

    def _try_out(self, rows: Rows) -> None:
        _require_per_row(rows, self._novelty(to_tensor(rows, self.device)))

    @abstractmethod
    def _fit(self, X: Tensor) -> None:
        """Learns from the training rows."""

    @abstractmethod
    def _novelty(self, X: Tensor) -> Tensor:
        """Novelty of each row, from that row alone."""


@dataclass(kw_only=True, eq=False, repr=False)
class OpenSetClassifier(PromisedClassifier, OpenWorldEstimator):
    """Names the known class of each row, or rejects the row as unknown.

    Args:
        rule: "calibrated" rejects rows of known classes at the rate ``alpha``; "own" is the decision rule of the
            method's paper, which promises no rate.
        calibration: Share of the rows held out from training to set the threshold and the p-values. With
            ``rule="own"`` it may be 0: all rows train, and there are no p-values. With "cv" every row trains and
            calibrates: one model per fold is fitted (CV+), for data too small to hold rows out.
        unknown_label: What ``predict`` answers for novel rows. By default -1 (one below the smallest class if -1 is
            a class), or "unknown" among string labels.
        folds: Number of folds, and of models, of ``calibration="cv"``.
        by_class: Keep the rate for the rows that are named as each class ("predicted", exactly) or that are of each
            class ("actual", closely), instead of over the rows of all classes; classes with few rows share one promise.
            ``predict_set`` then lists the classes that a row may be of.

    Attributes:
        classes_: The known classes, in ascending order.
        unknown_label_: What novel rows are called.
        promise_: The ``Promise`` that decides, fitted on the held-out rows.
        threshold_: Rows with a novelty above it are rejected.
        calibration_novelty_: Novelty of the held-out rows, in ascending order.
        uncovered_: Classes with too few rows to hold any out, which the promise does not cover.
        input_shape_: Shape of one row.
        history_: Mean of each training term per epoch, by name.
    """

    # The novelty above which the paper's own rule rejects a row; None where the paper has no rule.
    own_threshold: ClassVar[float | None] = None

    rule: Literal["calibrated", "own"] = "calibrated"
    calibration: Share | Literal["cv"] = 0.1
    unknown_label: int | str | None = None
    folds: Folds = 5
    by_class: ByClass | None = None

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learns the known classes ``y`` (ints or strings) of the rows ``X``."""
        rows, codes, rng = self._opened(X, y)
        if self.calibration == "cv":
            self.uncovered_ = uncovered_names(codes, self.classes_)
            self.members_ = fit_members(self, X, y, fold_splits(codes, self.folds, rng), rng)
            if self.by_class:
                self._join_class_promises()
            self._join_members()
            warn_of_lost_rows(len(codes), len(self.calibration_novelty_), self.alpha)
            return self
        return self._fit_and_calibrate(rows, y, codes, self._split(codes, rng), rng)

    def _opened(self, X: Any, y: ArrayLike) -> tuple[Any, NDArray[np.int64], np.random.Generator]:
        rng = self._start()
        self._require_rule()
        X = self._rows(X, reset=True) if self._encoder_for(X) is None else X
        _require_two(X)
        self.classes_, codes = known_classes(check_labels(self, X, y))
        self.unknown_label_ = choose_unknown_label(self.classes_, self.unknown_label)
        return X, codes, rng

    def _fit_split(self, X: Any, y: ArrayLike, split: Split) -> Self:
        """Trains on some rows and calibrates on others."""
        rows, codes, rng = self._opened(X, y)
        return self._fit_and_calibrate(rows, y, codes, split, rng)

    def _fit_and_calibrate(
        self, X: Any, y: ArrayLike, codes: NDArray[np.int64], split: Split, rng: np.random.Generator
    ) -> Self:
        train, held_out = split
        rows = X if self._encoder_for(X) is None else self._encoded(X, y, train, rng)
        if rows is X:
            warn_of_copies(rows)
        with local_seed(draw_seed(rng)):
            self._fit(to_tensor(rows[train], self.device), torch.from_numpy(codes[train]).to(self.device))
        own = self.own_threshold if self.rule == "own" else None
        found = self._held_out_scores(rows[held_out])
        self.promise_ = self._new_promise().set_params(own_threshold=own).fit(found.novelty)
        if self.by_class:
            self.class_promise_ = ClassPromise(alpha=self.alpha, by=self.by_class).fit(*found, codes[held_out])
        self._keep_held_out(rows[held_out], self.classes_[codes[held_out]])
        return self

    def _held_out_scores(self, rows: Rows) -> Classification:
        if not len(rows):
            return Classification(np.empty((0, len(self.classes_))), np.empty(0))
        return Classification(*current().scored(lambda own: self._scored(rows[own]), len(rows)))

    def _keep_held_out(self, rows: Rows, labels: NDArray[Any]) -> None:
        """Keeps the held-out rows if the method needs them after ``fit``; most do not."""

    def _require_rule(self) -> None:
        if self.rule == "own" and self.own_threshold is None:
            raise ValueError(f'rule must be "calibrated": {type(self).__name__} has no rule of its own')
        if self.rule == "own" and (self.by_class or self.calibration == "cv"):
            raise ValueError('by_class and calibration="cv" need rule="calibrated"')
        if self.by_class and self.confidence is not None:
            raise ValueError("confidence holds over the rows of all classes; it cannot be combined with by_class")

    def _split(self, codes: NDArray[np.int64], rng: np.random.Generator) -> Split:
        if self.calibration == 0:
            split = Split(np.arange(len(codes)), np.arange(0))
        else:
            assert self.calibration != "cv"
            split = hold_out(codes, self.calibration, rng)
        if self.rule == "calibrated" and len(split.held_out) == 0:
            raise ValueError('rule="calibrated" needs calibration above 0, and a class of y with more than one row')
        if len(split.held_out):
            self.uncovered_ = uncovered_names(codes, self.classes_)
            warn_of_uncovered(codes, uncovered(codes), self.classes_, self.alpha)
        return split

    def _classified(self, X: Any) -> Classification:
        return self._scored(self._checked(X))

    def _scored(self, rows: Rows) -> Classification:
        width = max(self._row_width(), len(self.classes_))
        proba, novelty = in_chunks(lambda X: _finite(self._classify(X)), rows, self.device, width)
        return Classification(proba, _ordered(novelty))

    def _try_out(self, rows: Rows) -> None:
        check_classes(self.classes_, self.unknown_label_)
        proba, novelty = self._classify(to_tensor(rows, self.device))
        _require_per_row(rows, novelty)
        _require_per_row(rows, proba, len(self.classes_))

    @abstractmethod
    def _fit(self, X: Tensor, y: Tensor) -> None:
        """Learns from the training rows; ``y`` holds the codes 0, 1, … of their classes."""

    @abstractmethod
    def _classify(self, X: Tensor) -> Classification:
        """Probabilities and novelty of each row, from that row alone."""


def _finite(found: Classification) -> Classification:
    """Probabilities as doubles, chunk by chunk, since all of them twice would be much where there are many classes.

    Nothing is known of a row that overflows the network: every class is equally likely.
    """
    return Classification(found.proba.double().nan_to_num(nan=1 / found.proba.shape[1]), found.novelty)


def _ordered(novelty: Rows) -> FloatArray:
    """Novelty as doubles; a row so extreme that it overflows the network is infinitely novel."""
    return np.nan_to_num(novelty.astype(np.float64), nan=np.inf, posinf=np.inf, neginf=-np.inf)


def _require_per_row(rows: Rows, found: Tensor, *width: int) -> None:
    if tuple(found.shape) != (len(rows), *width):
        raise ValueError(f"scores of {len(rows)} rows have the shape {tuple(found.shape)}")


def _require_two(X: Any) -> None:
    if isinstance(X, str):
        raise ValueError("X is one text; fit needs a list of them")
    if len(X) < 2:
        raise ValueError(f"X has {len(X)} sample(s); fit needs at least 2")
