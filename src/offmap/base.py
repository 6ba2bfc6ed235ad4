"""The contract that every method obeys: ``Detector`` and ``OpenSetClassifier``.

A method is a dataclass of parameters with two functions to write: ``_fit`` and ``_novelty`` (or ``_classify``).
Validation, the held-out rows, random state and saving are done here, once; thresholds and p-values come from a
``Promise``.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from offmap import parameters, persist
from offmap.arrays import (
    FloatArray,
    Rows,
    check_fitted_rows,
    check_rows,
    holds_text,
    in_chunks,
    to_tensor,
    trial_rows,
)
from offmap.calibration.contract import Classification, PromisedClassifier, PromisedDetector
from offmap.calibration.promise import Promise
from offmap.calibration.split import hold_out
from offmap.labels import check_classes, check_labels, choose_unknown_label, known_classes
from offmap.parameters import Count, Fraction, Share
from offmap.random_state import RandomState, as_generator, draw_seed, local_seed, seed_parts
from offmap.train import History, check_history


@dataclass(kw_only=True, eq=False, repr=False)
class OpenWorldEstimator(BaseEstimator, ABC):
    """What all methods share.

    Args:
        alpha: False-alarm rate that the threshold keeps. Lower it for fewer alarms; fewer novel rows are found then.
        calibration: Share of the rows held out from training to set the threshold and the p-values.
        encoder: Turns the input into feature rows first, as ``TextEncoder()`` does with texts; it is fitted too.
        image_shape: Height and width (and channels) of the image in each row of a flat ``X``.
        random_state: Seed; with one, the same data give the same model.
        device: Where torch computes, such as "cpu" or "cuda".
    """

    # Methods that see images as images, (n, c, h, w); for the others each image is one flat row.
    spatial: ClassVar[bool] = False
    # What every fitted model has: a file without it is refused.
    always_fitted: ClassVar[frozenset[str]] = frozenset({"history_", "input_shape_", "promise_"})
    # What a file does not decide for its user: where to write.
    local_parameters: ClassVar[frozenset[str]] = frozenset({"checkpoint"})

    alpha: Fraction = 0.05
    calibration: Fraction = 0.1
    encoder: BaseEstimator | None = None
    image_shape: tuple[Count, ...] | None = None
    random_state: RandomState = None
    device: str = "cpu"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model to one safetensors file; ``offmap.load`` reads it."""
        check_is_fitted(self, "promise_")
        persist.save(self, path)

    def _build(self) -> None:
        """Makes the networks from the parameters and the shapes that ``fit`` saw; ``load`` calls it too."""

    def _check_fitted(self) -> None:
        """Raises an error unless the fitted state can score rows; ``load`` calls it, since a file may say anything."""
        check_fitted_rows(self)
        check_history(self.history_)
        if not isinstance(self.promise_, Promise):
            raise ValueError("promise_ must be a Promise")
        if self.encoder is not None and type(getattr(self, "encoder_", None)) is not type(self.encoder):
            raise ValueError("encoder_ must be the fitted encoder")
        rows = trial_rows(self)
        with torch.inference_mode():
            self._try_out(rows if self.spatial or rows.ndim == 2 else _flat(rows))

    @abstractmethod
    def _try_out(self, rows: Rows) -> None:
        """Scores a few rows and raises an error if the result is not one number per row."""

    def _row_width(self) -> int:
        """How many numbers scoring computes per row on the way, where they are many more than the row has."""
        return 0

    def _checked(self, X: Any) -> Rows:
        """Validated rows for a fitted model."""
        check_is_fitted(self, "promise_")
        return self._rows(X)

    def _encoded(self, X: Any, y: Any, train: NDArray[np.intp], rng: np.random.Generator) -> Rows:
        """Rows made by an encoder that was fitted on the training part alone: the held-out rows calibrate it too."""
        self.encoder_ = clone(self.encoder)
        seed_parts(self.encoder_, rng)
        self.encoder_.fit(_safe_indexing(X, train), None if y is None else _safe_indexing(y, train))
        return self._rows(X, reset=True)

    def _rows(self, X: Any, *, reset: bool = False) -> Rows:
        """Encoded and validated rows."""
        if self.encoder is not None:
            X = self.encoder_.transform(X)
            X = X.toarray() if issparse(X) else X  # type: ignore[attr-defined] # every sparse matrix has it
        elif holds_text(X):
            raise ValueError("X holds text; give an encoder, such as encoder=TextEncoder(), or encode it before")
        rows = check_rows(self, X, reset=reset, image_shape=self.image_shape)
        return rows if self.spatial or rows.ndim == 2 else _flat(rows)

    def _start(self) -> np.random.Generator:
        """Checks the parameters and forgets the last fit: one that fails half-way must not leave its threshold."""
        parameters.check(self)
        if hasattr(self, "promise_"):
            del self.promise_
        self.history_: History = {}
        return as_generator(self.random_state)


@dataclass(kw_only=True, eq=False, repr=False)
class Detector(PromisedDetector, OpenWorldEstimator):
    """Learns what normal rows look like and flags those that look different.

    A scikit-learn outlier detector (``predict`` gives +1 for normal and -1 for novel) with ``novelty``, ``p_value``
    and ``assess``.

    Attributes:
        promise_: The ``Promise`` that decides, fitted on the held-out rows.
        threshold_: Rows with a novelty above it are flagged.
        calibration_novelty_: Novelty of the held-out rows, in ascending order.
        input_shape_: Shape of one row.
        history_: Mean of each training term per epoch, by name.
    """

    def fit(self, X: Any, y: object = None) -> Self:
        """Learns from normal rows; ``y`` is ignored."""
        rng = self._start()
        X = self._rows(X, reset=True) if self.encoder is None else X
        _require_two(X)
        train, held_out = hold_out(np.zeros(len(X), dtype=np.int64), self.calibration, rng)
        rows = X if self.encoder is None else self._encoded(X, None, train, rng)
        with local_seed(draw_seed(rng)):
            self._fit(to_tensor(rows[train], self.device))
        self.promise_ = Promise(alpha=self.alpha).fit(self._scored(self._novelty, rows[held_out]))
        return self

    def novelty(self, X: ArrayLike) -> FloatArray:
        """How novel each row is: higher is more novel, and above ``threshold_`` it is flagged."""
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
            ``rule="own"`` it may be 0: all rows train, and there are no p-values.
        unknown_label: What ``predict`` answers for novel rows. By default -1 (one below the smallest class if -1 is
            a class), or "unknown" among string labels.

    Attributes:
        classes_: The known classes, in ascending order.
        unknown_label_: What novel rows are called.
        promise_: The ``Promise`` that decides, fitted on the held-out rows.
        threshold_: Rows with a novelty above it are rejected.
        calibration_novelty_: Novelty of the held-out rows, in ascending order.
        input_shape_: Shape of one row.
        history_: Mean of each training term per epoch, by name.
    """

    # The novelty above which the paper's own rule rejects a row; None where the paper has no rule.
    own_threshold: ClassVar[float | None] = None

    rule: Literal["calibrated", "own"] = "calibrated"
    calibration: Share = 0.1
    unknown_label: int | str | None = None

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learns the known classes ``y`` (ints or strings) of the rows ``X``."""
        rng = self._start()
        self._require_rule()
        X = self._rows(X, reset=True) if self.encoder is None else X
        _require_two(X)
        labels = check_labels(self, X, y)
        self.classes_, codes = known_classes(labels)
        self.unknown_label_ = choose_unknown_label(self.classes_, self.unknown_label)
        train, held_out = self._split(codes, rng)
        rows = X if self.encoder is None else self._encoded(X, y, train, rng)
        with local_seed(draw_seed(rng)):
            self._fit(to_tensor(rows[train], self.device), torch.from_numpy(codes[train]).to(self.device))
        own = self.own_threshold if self.rule == "own" else None
        held_out_novelty = self._scored(rows[held_out]).novelty if len(held_out) else np.empty(0)
        self.promise_ = Promise(alpha=self.alpha, own_threshold=own).fit(held_out_novelty)
        return self

    def _require_rule(self) -> None:
        if self.rule == "own" and self.own_threshold is None:
            raise ValueError(f'rule must be "calibrated": {type(self).__name__} has no rule of its own')

    def _split(self, codes: NDArray[np.int64], rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        if self.calibration == 0:
            train, held_out = np.arange(len(codes)), np.arange(0)
        else:
            train, held_out = hold_out(codes, self.calibration, rng)
        if self.rule == "calibrated" and len(held_out) == 0:
            raise ValueError('rule="calibrated" needs calibration above 0, and a class of y with more than one row')
        return train, held_out

    def _classified(self, X: Any) -> Classification:
        return self._scored(self._checked(X))

    def _scored(self, rows: Rows) -> Classification:
        proba, novelty = in_chunks(self._classify, rows, self.device, self._row_width())
        # Nothing is known of a row that overflows the network: every class is equally likely.
        proba = np.nan_to_num(proba.astype(np.float64), copy=False, nan=1 / len(self.classes_))
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


def _ordered(novelty: Rows) -> FloatArray:
    """Novelty as doubles; a row so extreme that it overflows the network is infinitely novel."""
    return np.nan_to_num(novelty.astype(np.float64), nan=np.inf, posinf=np.inf, neginf=-np.inf)


def _require_per_row(rows: Rows, found: Tensor, *width: int) -> None:
    if tuple(found.shape) != (len(rows), *width):
        raise ValueError(f"scores of {len(rows)} rows have the shape {tuple(found.shape)}")


def _flat(images: Rows) -> Rows:
    """One flat row per image, with intensities in [0, 1]."""
    flat = images.reshape(len(images), -1)
    return flat / np.float32(255) if images.dtype == np.uint8 else flat


def _require_two(X: Any) -> None:
    if isinstance(X, str):
        raise ValueError("X is one text; fit needs a list of them")
    if len(X) < 2:
        raise ValueError(f"X has {len(X)} sample(s); fit needs at least 2")
