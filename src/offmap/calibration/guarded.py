"""A promise for any classifier: it names a known class, or says that the row is of none."""

import os
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted
from torch import nn

from offmap import parameters, persist
from offmap.calibration.classifier_contract import Classification, PromisedClassifier
from offmap.calibration.classifier_outputs import (
    Layer,
    class_names,
    class_probabilities,
    read_outputs,
    require_finite,
    require_logits,
    rows_at,
)
from offmap.calibration.contract import forget_fit
from offmap.calibration.cv import Folds, fit_members, fold_splits, warn_of_lost_rows
from offmap.calibration.fingerprint import Fingerprint
from offmap.calibration.foreign import checked_scores, require_classifier, require_spread, row_count, with_rows
from offmap.calibration.mondrian import ByClass, ClassPromise
from offmap.calibration.notices import warn_of_other_names, warn_of_uncovered
from offmap.calibration.post_hoc import codes_of, fitted_score, make_score, require_energy, wants_features
from offmap.calibration.split import Split, hold_out, uncovered, uncovered_names
from offmap.calibration.surprise import surprise_steps
from offmap.labels import as_labels, check_labels, choose_unknown_label, known_classes
from offmap.parameters import Fraction
from offmap.random_state import RandomState, as_generator, seed_parts
from offmap.scores import Outputs, Score, ScoreName, scored

NoveltyFunction = Callable[[Any, Any], Any]


@dataclass(eq=False, repr=False)
class Guarded(PromisedClassifier, BaseEstimator):
    """Lets any classifier answer "unknown" for rows that it was never taught, at a stated false-alarm rate.

    Args:
        classifier: A scikit-learn classifier, a pipeline that ends in one, or a trained ``torch.nn.Module``. None if
            rows are given as ``Outputs``: logits and features that were computed elsewhere.
        novelty_score: The name of a score of ``offmap.scores``, such as "max_softmax" or "k_nearest"; "auto", which
            takes the mean rank of three scores where there are features; a ``Score``; or a function of the fitted
            classifier and rows, higher for novel rows.
        features: Of a module, the name of the layer that returns features; or a function that maps rows to features.
            By default the rows as the last step of a pipeline gets them.
        logits: Of a module, the name of the layer that returns logits, if its output does not.
        classes: The class of each column of logits, for a module or ``Outputs``; by default 0, 1, … or those of ``y``.
        alpha: Rate at which rows of known classes are rejected.
        calibration: Share of the rows that ``fit`` holds out from training to set the threshold. With "cv" every row
            trains and calibrates: one copy per fold is fitted (CV+), for data too small to hold rows out.
        folds: Number of folds, and of copies, of ``calibration="cv"``.
        confidence: Probability that the rate of this very model is at most ``alpha``, such as 0.9.
        by_class: Keep the rate for the rows that are named as each class ("predicted", exactly) or that are of each
            class ("actual", closely), instead of over the rows of all; ``predict_set`` then lists the classes that a
            row may be of.
        unknown_label: What ``predict`` answers for novel rows; by default -1, or "unknown" among string labels.
        random_state: Seed of the split, and of the classifier where it has none of its own.

    Attributes:
        classifier_: The fitted classifier.
        score_: The fitted score; None if ``novelty_score`` is a function.
        classes_: The known classes.
        unknown_label_: What novel rows are called.
        promise_: The ``Promise`` that decides.
        fingerprint_: What tells this classifier from others when the model is loaded.
        threshold_: Rows with a novelty above it are rejected.
        calibration_novelty_: Novelty of the held-out rows, in ascending order.
        uncovered_: Classes with too few rows for ``fit`` to hold any out, which the promise does not cover.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = load_iris(return_X_y=True)
        >>> model = Guarded(LogisticRegression(), novelty_score="mahalanobis", random_state=0).fit(X[y < 2], y[y < 2])
        >>> model.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.9, 3.1, 5.4, 2.1]])
        array([ 0,  1, -1])
    """

    # The part that a file names and checks, but does not hold.
    foreign: ClassVar[tuple[str, str]] = ("classifier", "classifier_")
    always_fitted: ClassVar[frozenset[str]] = frozenset({"promise_", "fingerprint_", "classes_"})

    classifier: Any = None
    _: KW_ONLY
    novelty_score: ScoreName | Literal["auto"] | Score | NoveltyFunction = "max_softmax"
    features: Layer = None
    logits: str | None = None
    classes: Any = None
    alpha: Fraction = 0.05
    calibration: Fraction | Literal["cv"] = 0.3
    folds: Folds = 5
    confidence: Fraction | None = None
    by_class: ByClass | None = None
    unknown_label: int | str | None = None
    random_state: RandomState = None

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fits a copy of the classifier, and the score, on a part of the rows; calibrates on the rest.

        With ``Outputs`` only the score is fitted. Their rows must not have trained the model that computed them.
        """
        self._start()
        if isinstance(self.classifier, nn.Module):
            raise ValueError("fit cannot train a torch module; train it first, then call calibrate with other rows")
        X = with_rows(X)
        labels, rng = check_labels(self, X, y), as_generator(self.random_state)
        self.classes_, codes = known_classes(labels)
        self.unknown_label_ = choose_unknown_label(self.classes_, self.unknown_label)
        self.uncovered_ = uncovered_names(codes, self.classes_)
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

    def calibrate(
        self, X: Any, y: ArrayLike | None = None, *, reference: Any = None, y_reference: ArrayLike | None = None
    ) -> Self:
        """Calibrates a classifier that is already fitted, on rows of its classes that it has **not** seen.

        Args:
            X: The rows that set the threshold.
            y: Their classes, which ``by_class`` needs. They are checked: a row of another class is novel itself.
            reference: Rows that the score compares with, for scores that read features: the classifier's training
                rows, say. They must not be among ``X``. Without them "auto" reads logits alone.
            y_reference: The classes of these rows.
        """
        self._start()
        X = with_rows(X)
        if row_count(X) < 1:
            raise ValueError("X has 0 samples; calibrate needs at least 1")
        return self._calibrate(self.classifier, X, y, reference, self._labels(reference, y_reference))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all but the classifier to one safetensors file; ``offmap.load(path, model=classifier)`` reads it.

        The file holds up to 16 calibration rows, on which the classifier is recognised. With ``calibration="cv"`` there
        is one classifier per fold, with rows of its own; keep them and load with
        ``model=[member.classifier_ for member in model.members_]``.
        """
        check_is_fitted(self, "promise_")
        for name in ("novelty_score", "features"):
            if callable(getattr(self, name)):
                raise TypeError(f"{name} is a function, which a file cannot hold; save is for named scores and layers")
        persist.save(self, path)

    def _start(self) -> None:
        parameters.check(self)
        if self.confidence is not None and (self.calibration == "cv" or self.by_class):
            raise ValueError('confidence cannot be combined with calibration="cv" or by_class')
        forget_fit(self)

    def _fit_split(self, X: Any, y: Any, split: Split, rng: np.random.Generator | None = None) -> Self:
        """Trains on some rows and calibrates on others."""
        train, held_out = split.train, split.held_out
        classifier = None if self.classifier is None else clone(self.classifier)
        if classifier is not None:
            seed_parts(classifier, rng or as_generator(self.random_state))
            classifier.fit(rows_at(X, train), y[train])
        return self._calibrate(classifier, rows_at(X, held_out), y[held_out], rows_at(X, train), y[train])

    def _labels(self, reference: Any, y_reference: ArrayLike | None) -> NDArray[Any] | None:
        if y_reference is None:
            return None
        rows = 0 if reference is None else row_count(reference)
        if len(np.atleast_1d(np.asarray(y_reference))) != rows:
            raise ValueError(f"y_reference must hold the class of each row of reference, which has {rows} rows")
        return check_labels(self, reference, y_reference)

    def _calibrate(self, classifier: Any, X: Any, y: Any, reference: Any, labels: NDArray[Any] | None) -> Self:
        named = as_labels(np.asarray(y)) if labels is None and y is not None else labels
        self._learn_classes(classifier, X, named)
        codes = self._codes(y, row_count(X)) if self.by_class or y is not None else None
        self.score_ = self._fitted_score(reference, labels)
        outputs = self._read_for_score(X)
        require_finite(outputs, "X", self._reads())
        found = self._scored(X, outputs)
        require_spread(found.novelty)
        require_energy(self.score_, outputs.logits)
        if self.by_class and codes is not None:
            self.class_promise_ = ClassPromise(alpha=self.alpha, by=self.by_class).fit(*found, codes)
        self.promise_ = self._new_promise().fit(found.novelty)
        self.fingerprint_ = Fingerprint().fit(classifier, X, found.novelty)
        if hasattr(classifier, "predict") and not isinstance(X, Outputs):
            warn_of_other_names(np.asarray(classifier.predict(X)), self.classes_[found.proba.argmax(axis=1)])
        return self

    def _learn_classes(self, classifier: Any, X: Any, labels: NDArray[Any] | None) -> None:
        if classifier is not None and not isinstance(classifier, nn.Module):
            require_classifier(classifier)
        self.classifier_ = classifier
        outputs = self._read(X, with_features=False)
        require_logits(outputs)
        names = class_names(classifier, self.classes, labels, outputs.logits)
        self.classes_ = known_classes(names)[0] if hasattr(classifier, "classes_") else names
        self.unknown_label_ = choose_unknown_label(self.classes_, self.unknown_label)

    def _fitted_score(self, reference: Any, labels: NDArray[Any] | None) -> Score | None:
        if callable(self.novelty_score) and not isinstance(self.novelty_score, Score):
            return None
        reads_features = wants_features(self.novelty_score)
        known = None if reference is None else self._read(reference, with_features=reads_features)
        codes = None if labels is None else codes_of(labels, self.classes_)
        score = make_score(self.novelty_score, known)
        if known is not None and score.needs_rows:
            require_finite(known, "the known rows (reference)", score.reads)
        return fitted_score(score, known, codes)

    def _reads(self) -> frozenset[str]:
        """What of the outputs the score reads; logits name the class in any case."""
        return frozenset({"logits"}) | (frozenset() if self.score_ is None else self.score_.reads)

    def _read(self, X: Any, *, with_features: bool = True) -> Outputs:
        return read_outputs(
            self.classifier_, X, features=self.features, logits=self.logits, with_features=with_features
        )

    def _read_for_score(self, X: Any) -> Outputs:
        outputs = self._read(X, with_features="features" in self._reads())
        require_logits(outputs, len(self.classes_))
        return outputs

    def _classified(self, X: Any) -> Classification:
        check_is_fitted(self, "promise_")
        return self._scored(X, self._read_for_score(X))

    def _scored(self, X: Any, outputs: Outputs) -> Classification:
        if self.score_ is None:
            assert callable(self.novelty_score)
            novelty = self.novelty_score(self.classifier_, X)
        else:
            novelty = scored(self.score_, outputs)
        proba = class_probabilities(self.classifier_, X, outputs)
        return Classification(proba, checked_scores(novelty, row_count(X)))
