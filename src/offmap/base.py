"""The contract that every method obeys: ``Detector`` and ``OpenSetClassifier``.

A method is a dataclass of parameters with two functions to write: ``_fit`` and ``_novelty`` (or ``_classify``). Checking
input, holding out rows, thresholds, p-values, random state and saving are done here, once.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, clone
from sklearn.utils import _safe_indexing, assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d
from torch import Tensor

from offmap import parameters, persist
from offmap.arrays import Rows, check_rows, holds_text, in_chunks, to_tensor
from offmap.calibration import FloatArray, hold_out, p_values, threshold
from offmap.parameters import Fraction, Share
from offmap.random_state import local_seed
from offmap.train import History

UNKNOWN = -1


@dataclass(kw_only=True, eq=False, repr=False)
class OpenWorldEstimator(BaseEstimator, ABC):
    """What detectors and classifiers share.

    Args:
        alpha: False-alarm rate that the threshold is set for.
        calibration: Share of the rows held out from training to set the threshold and the p-values.
        encoder: Turns what is given as ``X`` into rows first, as ``TextEncoder()`` does with texts; it is fitted too.
        random_state: Seed; with one, the same data give the same model.
        device: Where torch works, such as "cpu" or "cuda".
    """

    # Methods that see images as images, (n, c, h, w); for the others each image is one flat row.
    spatial: ClassVar[bool] = False
    # What every fitted one knows: a file without it is refused.
    always_fitted: ClassVar[frozenset[str]] = frozenset(
        {"calibration_novelty_", "history_", "input_shape_", "threshold_"}
    )

    alpha: Fraction = 0.05
    calibration: Fraction = 0.1
    encoder: BaseEstimator | None = None
    random_state: int | np.random.RandomState | np.random.Generator | None = None
    device: str = "cpu"

    def novelty(self, X: ArrayLike) -> FloatArray:
        """How novel each row is; higher is more novel, and above ``threshold_`` it is flagged."""
        return self._novelty_of(self._checked(X))

    def p_value(self, X: ArrayLike) -> FloatArray:
        """The conformal p-value of each row under "this is like the training data"; small is novel."""
        novelty = self.novelty(X)
        if len(self.calibration_novelty_) == 0:
            raise ValueError("p_value needs held-out rows; fit with calibration above 0")
        return p_values(self.calibration_novelty_, novelty)

    @property
    def promised_rate(self) -> float | None:
        """The false-alarm rate that ``threshold_`` keeps: ``alpha``, or what so few held-out rows allow.

        None if nothing is promised, as by a rule of the method's own.
        """
        check_is_fitted(self, "threshold_")
        if getattr(self, "rule", "calibrated") == "own":
            return None
        return max(self.alpha, 1 / (len(self.calibration_novelty_) + 1))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model to one safetensors file; ``offmap.load`` reads it."""
        check_is_fitted(self, "threshold_")
        persist.save(self, path)

    def _build(self) -> None:
        """Makes the networks from the parameters and the shapes that ``fit`` saw; ``load`` calls it too."""

    def _row_width(self) -> int:
        """Numbers that scoring makes of a row on the way, where they are many more than the row has."""
        return 0

    @abstractmethod
    def _novelty_of(self, rows: Rows) -> FloatArray:
        """Novelty of rows that have passed the door."""

    def _checked(self, X: Any) -> Rows:
        """The door to a fitted model."""
        check_is_fitted(self, "threshold_")
        return self._rows(X)

    def _encoded(self, X: Any, y: Any, train: NDArray[np.intp], rng: np.random.Generator) -> Rows:
        """Rows made by an encoder that learnt from the training part alone: the held-out rows are to judge it too."""
        self.encoder_ = clone(self.encoder)
        if self.encoder_.get_params().get("random_state", 0) is None:
            self.encoder_.set_params(random_state=int(rng.integers(2**31)))
        self.encoder_.fit(_safe_indexing(X, train), None if y is None else _safe_indexing(y, train))
        return self._rows(X, reset=True)

    def _rows(self, X: Any, *, reset: bool = False) -> Rows:
        """Rows that have been encoded and checked, and are fit to work on."""
        if self.encoder is not None:
            X = self.encoder_.transform(X)
            X = X.toarray() if issparse(X) else X  # type: ignore[attr-defined] # every sparse matrix has it
        elif holds_text(X):
            raise ValueError("X holds text; give an encoder, such as encoder=TextEncoder(), or encode it before")
        rows = check_rows(self, X, reset=reset, image_shape=getattr(self, "image_shape", None))
        return rows if self.spatial or rows.ndim == 2 else _flat(rows)

    def _random(self) -> np.random.Generator:
        """A generator of our own: the caller's global random state is never touched."""
        if isinstance(self.random_state, np.random.RandomState):
            return np.random.default_rng(self.random_state.randint(2**31))
        return np.random.default_rng(self.random_state)

    def _start(self) -> np.random.Generator:
        parameters.check(self)
        # A fit that fails half-way must not leave the threshold of the last one, which says that all is there.
        if hasattr(self, "threshold_"):
            del self.threshold_
        self.history_: History = {}
        return self._random()

    def _calibrate(self, held_out: FloatArray) -> None:
        self.calibration_novelty_ = np.sort(held_out)


@dataclass(kw_only=True, eq=False, repr=False)
class Detector(OutlierMixin, OpenWorldEstimator):
    """Learns what normal rows look like and flags what does not.

    A scikit-learn outlier detector (``predict`` gives +1 for normal and -1 for novel) with ``novelty`` and ``p_value``.
    """

    def fit(self, X: Any, y: object = None) -> Self:
        """Learns from normal rows; ``y`` is ignored."""
        rng = self._start()
        X = self._rows(X, reset=True) if self.encoder is None else X
        _require_two(X)
        train, held_out = hold_out(np.zeros(len(X), dtype=np.int64), self.calibration, rng)
        rows = X if self.encoder is None else self._encoded(X, None, train, rng)
        with local_seed(int(rng.integers(2**31))):
            self._fit(to_tensor(rows[train], self.device))
        self._calibrate(self._novelty_of(rows[held_out]))
        self.threshold_ = threshold(self.calibration_novelty_, self.alpha)
        self.offset_ = -self.threshold_
        return self

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Minus the novelty: higher is more normal, as scikit-learn has it."""
        return -self.novelty(X)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """How far below the threshold each row lies: negative for novel rows."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """+1 for rows that pass, -1 for novel ones."""
        return np.where(self.novelty(X) > self.threshold_, -1, 1)

    def _novelty_of(self, rows: Rows) -> FloatArray:
        return self._mapped(self._novelty, rows)

    def _mapped(self, novelty: Callable[[Tensor], Tensor], rows: Rows) -> FloatArray:
        """What ``novelty`` makes of rows that have passed the door."""
        (values,) = in_chunks(lambda X: (novelty(X),), rows, self.device, self._row_width())
        return _ordered(values)

    @abstractmethod
    def _fit(self, X: Tensor) -> None:
        """Learns from the training rows."""

    @abstractmethod
    def _novelty(self, X: Tensor) -> Tensor:
        """Novelty of each row, from that row alone."""


class Classification(NamedTuple):
    """What an open-set classifier thinks of each row: ``proba`` over the known classes, and ``novelty``."""

    proba: Any
    novelty: Any


@dataclass(kw_only=True, eq=False, repr=False)
class OpenSetClassifier(ClassifierMixin, OpenWorldEstimator):
    """Names the known class of each row, or says that it is none of them.

    Args:
        rule: "calibrated" flags normal rows at the rate ``alpha``; "own" is the decision rule of the method's paper.
        calibration: As in every method; with the rule "own" it may be 0, to train on all rows and have no p-values.
        unknown_label: What ``predict`` answers for novel rows. By default -1 (one below the smallest class if -1 is
            a class), or "unknown" among string labels.
    """

    # The novelty above which the method's own rule says "unknown"; None where it has no rule of its own.
    own_threshold: ClassVar[float | None] = None

    rule: Literal["calibrated", "own"] = "calibrated"
    calibration: Share = 0.1
    unknown_label: int | str | None = None

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learns the known classes ``y`` (ints or strings) of the rows ``X``."""
        rng = self._start()
        X = self._rows(X, reset=True) if self.encoder is None else X
        _require_two(X)
        codes = self._learn_labels(X, y)
        train, held_out = self._split(codes, rng)
        rows = X if self.encoder is None else self._encoded(X, y, train, rng)
        with local_seed(int(rng.integers(2**31))):
            self._fit(to_tensor(rows[train], self.device), torch.from_numpy(codes[train]).to(self.device))
        self._calibrate(self._novelty_of(rows[held_out]) if len(held_out) else np.empty(0))
        self.threshold_ = self._threshold()
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The known label of each row, or ``unknown_label_`` if it is novel."""
        proba, novelty = self._judged(self._checked(X))
        answers = np.append(self.classes_, np.array([self.unknown_label_], dtype=np.asarray(self.unknown_label_).dtype))
        return answers[np.where(novelty > self.threshold_, len(self.classes_), proba.argmax(axis=1))]

    def predict_closed(self, X: ArrayLike) -> NDArray[Any]:
        """The likeliest known label of each row, whether it is novel or not."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probabilities of the known classes, given that it is one of them; columns as ``classes_``."""
        return self._judged(self._checked(X)).proba

    def _learn_labels(self, X: Any, y: ArrayLike) -> NDArray[np.int64]:
        """The code of each row's class; remembers the classes and what unknown rows will be called."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("y holds one class only; an open-set classifier needs two, one class is for a Detector")
        self.unknown_label_ = self._choose_unknown_label()
        return codes

    def _choose_unknown_label(self) -> int | str:
        strings = self.classes_.dtype.kind in "UO"
        label = self._usual_unknown_label(strings) if self.unknown_label is None else self.unknown_label
        if isinstance(label, str) != strings:
            raise ValueError(f"unknown_label {label!r} must be {'a string' if strings else 'a number'}, as y is")
        if label in self.classes_:
            raise ValueError(f"unknown_label {label!r} is a class of y; choose another")
        return label

    def _usual_unknown_label(self, strings: bool) -> int | str:
        if strings:
            return "unknown"
        return int(self.classes_.min()) - 1 if UNKNOWN in self.classes_ else UNKNOWN

    def _split(self, codes: NDArray[np.int64], rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        if self.calibration == 0:
            train, held_out = np.arange(len(codes)), np.arange(0)
        else:
            train, held_out = hold_out(codes, self.calibration, rng)
        if self.rule == "calibrated" and len(held_out) == 0:
            raise ValueError('rule="calibrated" needs calibration above 0, and a class of y with more than one row')
        return train, held_out

    def _threshold(self) -> float:
        if self.rule == "calibrated":
            return threshold(self.calibration_novelty_, self.alpha)
        if self.own_threshold is None:
            raise ValueError(f'rule must be "calibrated": {type(self).__name__} has no rule of its own')
        return self.own_threshold

    def _judged(self, rows: Rows) -> Classification:
        proba, novelty = in_chunks(self._classify, rows, self.device, self._row_width())
        # Of a row that overflows the network nothing is known: every class is as likely.
        proba = np.nan_to_num(proba.astype(np.float64), nan=1 / len(self.classes_))
        return Classification(proba, _ordered(novelty))

    def _novelty_of(self, rows: Rows) -> FloatArray:
        return self._judged(rows).novelty

    @abstractmethod
    def _fit(self, X: Tensor, y: Tensor) -> None:
        """Learns from the training rows; ``y`` holds the codes 0, 1, … of their classes."""

    @abstractmethod
    def _classify(self, X: Tensor) -> Classification:
        """Probabilities and novelty of each row, from that row alone."""


def _ordered(novelty: Rows) -> FloatArray:
    """Novelty as doubles; a row so extreme that it overflows the network is as novel as can be."""
    return np.nan_to_num(novelty.astype(np.float64), nan=np.inf, posinf=np.inf, neginf=-np.inf)


def _flat(images: Rows) -> Rows:
    """One flat row an image, with intensities in [0, 1]."""
    flat = images.reshape(len(images), -1)
    return flat / np.float32(255) if images.dtype == np.uint8 else flat


def _require_two(X: Any) -> None:
    if isinstance(X, str):
        raise ValueError("X is one text; fit needs a list of them")
    if len(X) < 2:
        raise ValueError(f"X has {len(X)} sample(s); fit needs at least 2")
