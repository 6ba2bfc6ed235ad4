"""A promise for any classifier: it names a known class, or says that the row is of none."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from offmap import parameters
from offmap.calibration.contract import Classification, PromisedClassifier
from offmap.calibration.cv import Folds, fit_members, fold_splits, warn_of_lost_rows
from offmap.calibration.foreign import checked_scores, row_count
from offmap.calibration.mondrian import ClassPromise
from offmap.calibration.notices import warn_of_uncovered
from offmap.calibration.split import Split, hold_out, uncovered
from offmap.calibration.surprise import surprise_steps
from offmap.labels import check_labels, choose_unknown_label, known_classes
from offmap.parameters import Fraction
from offmap.random_state import RandomState, as_generator, seed_parts

NoveltyFunction = Callable[[Any, Any], Any]


@dataclass(eq=False, repr=False)
class Guarded(PromisedClassifier, BaseEstimator):
    """Lets any classifier answer "unknown" for rows that it was never taught, at a stated false-alarm rate.

    Args:
        classifier: A scikit-learn classifier, or a pipeline that ends in one.
        novelty_score: "max_softmax" (1 minus the largest probability), "max_logit" or "energy" (from the
            classifier's ``decision_function``), or a function of the fitted classifier and rows, higher for novel rows.
        alpha: Rate at which rows of known classes are rejected.
        calibration: Share of the rows that ``fit`` holds out from training to set the threshold. With "cv" every row
            trains and calibrates: one copy per fold is fitted (CV+), for data too small to hold rows out.
        folds: Number of folds, and of copies, of ``calibration="cv"``.
        confidence: Probability that the rate of this very model is at most ``alpha``, such as 0.9.
        by_class: Keep the rate for each class instead of over the rows of all; ``predict_set`` then lists the classes
            that a row may be of.
        unknown_label: What ``predict`` answers for novel rows; by default -1, or "unknown" among string labels.
        random_state: Seed of the split, and of the classifier where it has none of its own.

    Attributes:
        classifier_: The fitted classifier.
        classes_: The known classes.
        unknown_label_: What novel rows are called.
        promise_: The ``Promise`` that decides.
        threshold_: Rows with a novelty above it are rejected.
        calibration_novelty_: Novelty of the held-out rows, in ascending order.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = load_iris(return_X_y=True)
        >>> model = Guarded(LogisticRegression(), random_state=0).fit(X[y < 2], y[y < 2])
        >>> model.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3]])
        array([0, 1])
    """

    classifier: Any
    _: KW_ONLY
    novelty_score: Literal["max_softmax", "max_logit", "energy"] | NoveltyFunction = "max_softmax"
    alpha: Fraction = 0.05
    calibration: Fraction | Literal["cv"] = 0.3
    folds: Folds = 5
    confidence: Fraction | None = None
    by_class: bool = False
    unknown_label: int | str | None = None
    random_state: RandomState = None

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fits a copy of the classifier on a part of the rows and calibrates it on the rest."""
        self._start()
        labels, rng = check_labels(self, X, y), as_generator(self.random_state)
        self.classes_, codes = known_classes(labels)
        self.unknown_label_ = choose_unknown_label(self.classes_, self.unknown_label)
        if self.calibration == "cv":
            splits = fold_splits(codes, self.folds, rng)
            self.members_ = fit_members(self, X, labels, splits, rng)
            if self.by_class:
                self._join_class_promises()
            self.promise_ = self._new_promise().fit(surprise_steps(sum(len(split.held_out) for split in splits)))
            warn_of_lost_rows(len(codes), len(self.calibration_novelty_), self.alpha)
            return self
        split = hold_out(codes, self.calibration, rng)
        if len(split.held_out) == 0:
            raise ValueError("y must have a class with more than one row, to hold rows out for calibration")
        warn_of_uncovered(codes, uncovered(codes), self.classes_, self.alpha)
        return self._fit_split(X, labels, split, rng)

    def calibrate(self, X: Any, y: Any = None) -> Self:
        """Calibrates a classifier that is already fitted, on rows of its classes that it has **not** seen.

        Args:
            X: The rows.
            y: Their classes, which ``by_class=True`` needs.
        """
        self._start()
        check_is_fitted(self.classifier, "classes_")
        if row_count(X) < 1:
            raise ValueError("X has 0 samples; calibrate needs at least 1")
        return self._calibrate(self.classifier, X, y)

    def _start(self) -> None:
        parameters.check(self)
        if self.confidence is not None and (self.calibration == "cv" or self.by_class):
            raise ValueError('confidence cannot be combined with calibration="cv" or by_class=True')
        for name in ("promise_", "members_", "class_promise_"):
            self.__dict__.pop(name, None)

    def _fit_split(self, X: Any, y: Any, split: Split, rng: np.random.Generator | None = None) -> Self:
        """Trains on some rows and calibrates on others."""
        classifier = clone(self.classifier)
        seed_parts(classifier, rng or as_generator(self.random_state))
        classifier.fit(_safe_indexing(X, split.train), y[split.train])
        return self._calibrate(classifier, _safe_indexing(X, split.held_out), y[split.held_out])

    def _calibrate(self, classifier: Any, X: Any, y: Any) -> Self:
        self.classifier_ = classifier
        self.classes_, _ = known_classes(np.asarray(classifier.classes_))
        self.unknown_label_ = choose_unknown_label(self.classes_, self.unknown_label)
        found = self._scored(X)
        if self.by_class:
            self.class_promise_ = ClassPromise(alpha=self.alpha).fit(*found, self._codes(y))
        self.promise_ = self._new_promise().fit(found.novelty)
        return self

    def _classified(self, X: Any) -> Classification:
        check_is_fitted(self, "promise_")
        return self._scored(X)

    def _scored(self, X: Any) -> Classification:
        if callable(self.novelty_score):
            proba, novelty = _proba(self.classifier_, X), self.novelty_score(self.classifier_, X)
        elif self.novelty_score == "max_softmax":
            proba = _proba(self.classifier_, X)
            novelty = 1 - proba.max(axis=1)
        else:
            logits = _logits(self.classifier_, X)
            proba = softmax(logits, axis=1)
            novelty = -(logits.max(axis=1) if self.novelty_score == "max_logit" else logsumexp(logits, axis=1))
        return Classification(proba, checked_scores(novelty, row_count(X)))


def _proba(classifier: Any, X: Any) -> NDArray[np.float64]:
    if hasattr(classifier, "predict_proba"):
        return np.asarray(classifier.predict_proba(X), dtype=np.float64)
    return softmax(_logits(classifier, X), axis=1)


def _logits(classifier: Any, X: Any) -> NDArray[np.float64]:
    """One column per class; scikit-learn's single column for two classes is the log-odds of the second."""
    if not hasattr(classifier, "decision_function"):
        raise ValueError(
            f"classifier {type(classifier).__name__} has no decision_function; novelty_score must be 'max_softmax' "
            "or a function"
        )
    logits = np.asarray(classifier.decision_function(X), dtype=np.float64)
    return np.stack([-logits / 2, logits / 2], axis=1) if logits.ndim == 1 else logits
