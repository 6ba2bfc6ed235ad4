"""Classifiers that learn new classes, and more rows of known ones, without a new fit on all rows."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from offmap.arrays import Rows, to_tensor
from offmap.base import OpenSetClassifier
from offmap.calibration.classifier_contract import Classification
from offmap.calibration.conformal import CalibrationWarning
from offmap.calibration.cv import require_one_model
from offmap.calibration.mondrian import ClassPromise
from offmap.calibration.split import hold_out as split_rows
from offmap.calibration.split import uncovered
from offmap.errors import warn_caller
from offmap.labels import check_labels, known_classes, require_type_of
from offmap.random_state import as_generator, draw_seed, local_seed


@dataclass(kw_only=True, eq=False, repr=False)
class IncrementalClassifier(OpenSetClassifier, ABC):
    """Base of the open-set classifiers that have ``partial_fit``; a classifier without it must be fitted anew.

    Attributes:
        held_out_rows_: The rows that set the threshold, of all classes learnt so far; they are scored again after
            each ``partial_fit``, because the novelty of a row changes with what the model knows.
        held_out_labels_: Their classes.
        uncovered_: Classes of which no row could be held out, in any lesson; the promise does not cover them.
        rows_: Training rows that later lessons need; which ones is up to the method.
        row_labels_: Their classes.
    """

    # Parameters with which the method learns in stages best; a world sets them.
    learning_parameters: ClassVar[Mapping[str, Any]] = {}

    def partial_fit(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, *, calibrate: bool = True) -> Self:
        """Learns rows of new and of known classes, and keeps what was learnt before.

        The encoder and the scaling of features stay those of the first fit. The threshold is set anew on the held-out
        rows of all classes.

        Args:
            X: Rows.
            y: Their classes, known or new.
            classes: Not needed, since classes may come at any time; scikit-learn's name for them is accepted.
            calibrate: Whether a share ``calibration`` of ``X`` is held out and added to the rows that set the
                threshold. Pass False if ``X`` is no random sample of its classes, such as rows that were found
                because they are unusual: the promised rate would not hold.
        """
        if not hasattr(self, "promise_"):
            return self.fit(X, y)
        require_one_model(self, "partial_fit")
        rows, labels = self._checked(X), self._checked_labels(X, y)
        merged = self._with_new(labels)
        codes, old = np.searchsorted(merged, labels), np.searchsorted(merged, self.classes_)
        rng = as_generator(self.random_state)
        train, held_out = self._new_split(codes, rng, calibrate)
        self._leave_recalibration()
        self.uncovered_ = self._uncovered_after(codes, merged, len(held_out) > 0)
        self.classes_ = merged
        self._copy_network()
        with local_seed(draw_seed(rng)):
            self._learn(to_tensor(rows[train], self.device), torch.from_numpy(codes[train]).to(self.device), old)
        self._keep_held_out(
            np.concatenate([self.held_out_rows_, rows[held_out]]),
            np.concatenate([self.held_out_labels_, labels[held_out]]),
        )
        self.calibrate_again()
        return self

    def recalibrate(self, X: Any, y: Any = None) -> Self:
        """The same fitted model with threshold and p-values set by other rows, which it must **not** have seen.

        A model that learns or forgets later scores rows otherwise: recalibrate it again then.

        Args:
            X: Rows of known classes.
            y: Their classes, which ``by_class`` needs. They are checked: a row of another class is novel itself.
        """
        model = super().recalibrate(X, y)
        # Kept as long as these rows set the threshold, and in files: what the held-out rows do not cover.
        model.uncovered_before_ = self._uncovered_by_held_out()
        return model

    def _leave_recalibration(self) -> None:
        """Returns to what the held-out rows cover, and warns if the rows of ``recalibrate`` set the threshold."""
        if not hasattr(self, "uncovered_before_"):
            return
        self.uncovered_ = self._uncovered_by_held_out()
        del self.uncovered_before_
        warn_caller(
            "the model changes, so that the rows of recalibrate no longer set its threshold: the rows held out by fit "
            "and partial_fit do; call recalibrate again",
            CalibrationWarning,
        )

    def _uncovered_by_held_out(self) -> list[str]:
        found: list[str] = getattr(self, "uncovered_before_", getattr(self, "uncovered_", []))
        return found

    def _uncovered_after(self, codes: NDArray[np.int64], classes: NDArray[Any], held_out: bool) -> list[str]:
        """Classes of which no row was held out before a lesson, nor could be in it.

        Args:
            codes: The class of each row of the lesson, as a place in ``classes``.
            classes: All classes, old and new.
            held_out: Whether rows of the lesson were held out.
        """
        new = classes[~np.isin(classes, self.classes_)]
        drawn = classes[np.setdiff1d(codes, uncovered(codes))] if held_out else classes[:0]
        lacking = {*self._uncovered_by_held_out(), *map(str, new)} - {*map(str, drawn)}
        return [name for name in map(str, classes) if name in lacking]

    def _copy_network(self) -> None:
        """Makes a network that may be changed; the present one may be shared with a model that ``at`` returned."""
        self.network_: Any = deepcopy(self.network_)

    def _check_fitted(self) -> None:
        """Kept rows are learnt from later: a file must have one known class per row."""
        for rows, labels in (("held_out_rows_", "held_out_labels_"), ("rows_", "row_labels_")):
            classes = getattr(self, labels)
            if len(getattr(self, rows)) != len(classes) or not np.isin(classes, self.classes_).all():
                raise ValueError(f"{labels} must hold one known class per row of {rows}")
        if not all(isinstance(name, str) for name in self._uncovered_by_held_out()):
            raise ValueError("uncovered_ and uncovered_before_ must hold the names of classes")
        super()._check_fitted()

    def _checked_labels(self, X: Any, y: ArrayLike) -> NDArray[Any]:
        with warnings.catch_warnings():
            # A few rows may well be of as many classes: these are classes and no numbers to regress on.
            warnings.filterwarnings("ignore", message="The number of unique classes")
            return check_labels(self, X, y)

    def _known_codes(self, X: Any, y: ArrayLike) -> NDArray[np.int64]:
        """The codes of the classes of rows, all of which must be known."""
        labels = self._checked_labels(X, y)
        return self._codes(labels, len(labels))

    def _with_new(self, labels: NDArray[Any]) -> NDArray[Any]:
        """All classes in ascending order; new labels must be of the same type and not the unknown label."""
        require_type_of(self.classes_, labels)
        if self.unknown_label_ in labels:
            raise ValueError(f"y holds {self.unknown_label_!r}, which unknown rows are called; choose another label")
        return known_classes(np.concatenate([self.classes_, labels]))[0]

    def _new_split(
        self, codes: NDArray[np.int64], rng: np.random.Generator, calibrate: bool
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        if self.calibration in (0, "cv") or not calibrate:
            return np.arange(len(codes)), np.arange(0)
        return split_rows(codes, float(self.calibration), rng)

    def _keep_held_out(self, rows: Rows, labels: NDArray[Any]) -> None:
        self.held_out_rows_, self.held_out_labels_ = rows, labels

    def calibrate_again(self) -> None:
        """Sets the threshold on the held-out rows of all fits, as the model scores them now."""
        require_one_model(self, "calibrate_again")
        self._leave_recalibration()
        known = {*map(str, self.classes_)}
        self.uncovered_ = [name for name in self._uncovered_by_held_out() if name in known]
        own = self.own_threshold if self.rule == "own" else None
        nothing = Classification(np.empty((0, len(self.classes_))), np.empty(0))
        found = self._scored(self.held_out_rows_) if len(self.held_out_rows_) else nothing
        self.promise_ = self._new_promise().set_params(own_threshold=own).fit(found.novelty)
        if self.by_class:
            codes = np.searchsorted(self.classes_, self.held_out_labels_)
            self.class_promise_ = ClassPromise(alpha=self.alpha, by=self.by_class).fit(*found, codes)

    @abstractmethod
    def _learn(self, X: Tensor, y: Tensor, old: NDArray[np.intp]) -> None:
        """Learns rows whose codes ``y`` count all classes; ``old`` holds the new codes of the classes known before."""
