"""P-values by class: a row is compared with the held-out rows of one class, the predicted one or each in turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from offmap.arrays import FloatArray
from offmap.calibration.class_balance import class_offsets, class_weights, fitted_sharpness, log_proba
from offmap.calibration.conditional import rows_needed
from offmap.parameters import Fraction

# The share of alpha that is spent on telling implausible classes from plausible ones; the rest goes to the novelty.
_PLAUSIBILITY_SHARE = 0.1
Evidence = tuple[FloatArray, FloatArray]
# The rows of which class keep the rate: those that the model names so, or those that are of it.
ByClass = Literal["predicted", "actual"]


@dataclass(kw_only=True, eq=False, repr=False)
class ClassPromise(BaseEstimator):
    r"""Conformal p-values by class, from held-out rows whose class is known.

    **Whether a row is novel** by the ``"predicted"`` class is judged among the held-out rows that the model names as it
    names the row, $k(x)$:

    $$p(x) = \frac{1 + \#\{i : k(x_i) = k(x), s_i \ge s(x)\}}{1 + \#\{i : k(x_i) = k(x)\}}.$$

    Of the known rows that are named $c$, at most a share $\alpha$ gets $p \le \alpha$, *for each class* $c$ and for any
    classifier; the rate over all rows is then at most $\alpha$ too. Among the rows that *are* of class $c$ the rate is
    at most $\alpha P(k = c) / P(c)$ plus the share of them that is named otherwise.

    By the ``"actual"`` class, which nobody knows of a new row, the novelty is first moved by the offsets of
    ``class_offsets``, $u(x) = s(x) - \sum_c w_c(x) \theta_c$ with $w_c(x) \propto p_c(x)^\beta$, so that the same
    $u$ is exceeded by a share $\alpha$ of the held-out rows of each class. Then

    $$p(x) = \sum_c w_c(x) \frac{1 + \#\{i \text{ of class } c : u_i \ge u(x)\}}{n_c + 1}.$$

    Each term is a p-value for the rows of its class, and near $\alpha$ the terms agree: about a share $\alpha$ of the
    rows of each class is flagged. This is not exact, since $\theta$ and $\beta$ are chosen on the same held-out rows.
    To flag a row only if each class that it may be of rejects it would be, but flags far too few.

    **Which classes a row may be of** is asked of each class, by the held-out rows that are of it. The nonconformity of
    row $x$ with class $c$ is its novelty if the class is plausible, and otherwise larger than any novelty, growing with
    the gap $\log p_{\max}(x) - \log p_c(x)$. A class is plausible while the gap is at most the one that a tenth of
    ``alpha`` of the held-out rows have to their own class. With it

    $$p_c(x) = \frac{1 + \#\{i \text{ of class } c : s_i \ge s(x, c)\}}{n_c + 1}.$$

    A row of class $c$ gets $p_c \le \alpha$ with a probability of at most $\alpha$, *for each class*. The one number
    that is chosen from the held-out rows, the largest plausible gap, is a quantile of all of them.

    Classes with fewer held-out rows than $1/\alpha - 1$ are pooled: the rows of all of these together stand for each of
    them, and the promise holds over them together. If even those are too few, the rows of all classes stand for them.
    With one model per fold (CV+) a row is compared with the held-out rows of each fold by the model of that fold.

    Args:
        alpha: Rate at which rows of a class are rejected by it.
        by: Whether the class of the rows that keep the rate is the one that the model names, or their own.

    Attributes:
        novelty_: Novelty of the held-out rows.
        gap_: Their gap to their own class.
        code_: Code 0, 1, … of their class.
        named_: Code of the class that the model names.
        member_: The model that held each of them out, where there are several.
        class_count_: Number of known classes.
        logs_: Logarithms of their probabilities of the classes; no columns unless ``by="actual"``.
        sharpness_: Exponent of the probabilities; 1 unless ``by="actual"``.
        offsets_: What the novelty is moved by, for each class; zero unless ``by="actual"``.

    Reference: Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005, section 4.5.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> proba, codes = np.tile([0.9, 0.1], (200, 1)), np.zeros(200, dtype=int)
        >>> proba[100:], codes[100:] = [0.1, 0.9], 1
        >>> promise = ClassPromise(alpha=0.1).fit(proba, np.r_[rng.uniform(0, 1, 100), rng.uniform(0, 5, 100)], codes)
        >>> promise.p_values([(np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([3.0, 3.0]))]) > 0.1
        array([[False, False],
               [False,  True]])
        >>> promise.p_value([(np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([3.0, 3.0]))]) > 0.1
        array([False,  True])
    """

    # A model file that lacks one of these is refused.
    always_fitted: ClassVar[frozenset[str]] = frozenset(
        {"novelty_", "gap_", "code_", "named_", "member_", "class_count_", "logs_", "sharpness_", "offsets_"}
    )

    alpha: Fraction = 0.05
    by: ByClass = "predicted"

    def fit(self, proba: FloatArray, novelty: FloatArray, codes: NDArray[np.int64]) -> Self:
        """Takes probabilities, novelty and class of held-out rows."""
        self.novelty_ = np.asarray(novelty, dtype=np.float64)
        self.code_ = np.asarray(codes, dtype=np.int64)
        self.named_ = proba.argmax(axis=1).astype(np.int64)
        self.gap_ = _gaps(proba)[np.arange(len(codes)), self.code_]
        self.member_ = np.zeros(len(codes), dtype=np.int64)
        self.class_count_ = int(proba.shape[1])
        self.logs_ = log_proba(proba) if self.by == "actual" else np.empty((len(codes), 0))
        return self._balanced()

    @classmethod
    def joined(cls, parts: Sequence["ClassPromise"], alpha: float) -> "ClassPromise":
        """The promise of several models together, each with held-out rows of its own."""
        whole = cls(alpha=alpha, by=parts[0].by)
        for name in ("novelty_", "gap_", "code_", "named_", "logs_"):
            setattr(whole, name, np.concatenate([getattr(part, name) for part in parts]))
        whole.member_ = np.repeat(np.arange(len(parts)), [len(part.code_) for part in parts])
        whole.class_count_ = parts[0].class_count_
        return whole._balanced()

    def at(self, alpha: float) -> "ClassPromise":
        """The promise of another rate, from the same held-out rows."""
        other = ClassPromise(alpha=alpha, by=self.by)
        other.__dict__.update({name: value for name, value in vars(self).items() if name.endswith("_")})
        return other._balanced()

    def _balanced(self) -> Self:
        """Sets the offsets of the classes; those that share held-out rows have one."""
        self.sharpness_, self.offsets_ = 1.0, np.zeros(self.class_count_)
        if self.by == "actual" and len(self.code_):
            self.sharpness_ = fitted_sharpness(self.logs_, self.code_)
            shared = self._shared(self._groups(self.code_))
            weights = class_weights(self.logs_, self.sharpness_)
            of_group = np.column_stack([weights[:, codes].sum(axis=1) for codes, _ in shared])
            offsets = class_offsets(self.novelty_, of_group, np.array([rows for _, rows in shared]), self.alpha)
            for (codes, _), offset in zip(shared, offsets, strict=True):
                self.offsets_[codes] = offset
        return self

    @property
    def members(self) -> int:
        """Number of models that held rows out."""
        return int(self.member_.max()) + 1

    @property
    def pooled(self) -> NDArray[np.intp]:
        """Codes of the classes that have too few held-out rows for a rate of their own."""
        codes = self.named_ if self.by == "predicted" else self.code_
        return np.flatnonzero(np.bincount(codes, minlength=self.class_count_) < rows_needed(self.alpha))

    def p_value(self, evidence: Sequence[Evidence]) -> FloatArray:
        """The p-value of each row, by its predicted or its actual class.

        Args:
            evidence: Probabilities and novelty of the rows, from each of the models.
        """
        return self._by_predicted(evidence) if self.by == "predicted" else self._by_actual(evidence)

    def _by_predicted(self, evidence: Sequence[Evidence]) -> FloatArray:
        groups = self._groups(self.named_)
        at_least, compared = np.zeros((2, len(evidence[0][1])))
        for member, (proba, novelty) in enumerate(evidence):
            named = proba.argmax(axis=1)
            for code in np.unique(named):
                held_out, rows = self.novelty_[groups[code] & (self.member_ == member)], named == code
                at_least[rows] += _at_least(held_out, novelty[rows])
                compared[rows] += len(held_out)
        return np.asarray((1 + at_least) / (1 + compared), dtype=np.float64)

    def _by_actual(self, evidence: Sequence[Evidence]) -> FloatArray:
        weights = [class_weights(log_proba(proba), self.sharpness_) for proba, _ in evidence]
        moved = [self._moved(novelty, each) for each, (_, novelty) in zip(weights, evidence, strict=True)]
        held_out = self._moved(self.novelty_, class_weights(self.logs_, self.sharpness_))
        found = np.zeros(len(moved[0]))
        for codes, rows in self._shared(self._groups(self.code_)):
            of_member = [held_out[rows & (self.member_ == member)] for member in range(len(evidence))]
            counts = [_at_least(part, each) for part, each in zip(of_member, moved, strict=True)]
            of_classes = [np.ascontiguousarray(each[:, codes]).sum(axis=1) for each in weights]
            found += np.mean(of_classes, axis=0) * ((1 + np.sum(counts, axis=0)) / (1 + rows.sum()))
        return found

    def _moved(self, novelty: FloatArray, weights: FloatArray) -> FloatArray:
        """The novelty less the offsets; summed row by row, since the rounding of a product depends on the batch."""
        return novelty - (weights * self.offsets_).sum(axis=1)

    def p_values(self, evidence: Sequence[Evidence]) -> FloatArray:
        """The p-value of each row and class.

        Args:
            evidence: Probabilities and novelty of the rows, from each of the models.
        """
        groups, limit = self._groups(self.code_), self._plausible_gap()
        found = np.empty((len(evidence[0][1]), self.class_count_))
        for codes, rows in self._shared(groups):
            of_member = [rows & (self.member_ == member) for member in range(len(evidence))]
            counts = [
                self._conforming(part, *each, codes, limit) for part, each in zip(of_member, evidence, strict=True)
            ]
            found[:, codes] = (1 + np.sum(counts, axis=0)) / (rows.sum() + 1)
        return found

    def _conforming(
        self, rows: NDArray[np.bool_], proba: FloatArray, novelty: FloatArray, codes: list[int], limit: float
    ) -> NDArray[np.int64]:
        """How many of the held-out ``rows`` conform no better to the classes ``codes`` than each row does."""
        plausible = rows & (self.gap_ <= limit)
        near, far = self.novelty_[plausible], self.gap_[rows & ~plausible]
        gaps = _gaps(proba)[:, codes]
        within, beyond = _at_least(near, novelty) + len(far), _at_least(far, gaps)
        return np.where(gaps <= limit, within[:, None], beyond)

    def _check_fitted(self) -> None:
        """Raises a ``ValueError`` unless the fitted state is one that ``fit`` leaves; ``load`` calls it."""
        numbers = {"novelty_": self.novelty_, "gap_": self.gap_}
        codes = {"code_": self.code_, "named_": self.named_, "member_": self.member_}
        for name, values in (numbers | codes).items():
            wanted = np.float64 if name in numbers else np.int64
            if not isinstance(values, np.ndarray) or values.dtype != wanted or values.shape != self.novelty_.shape:
                raise ValueError(f"{name} must be one number per held-out row")
            if (np.isnan(values) if name in numbers else values < 0).any():
                raise ValueError(f"{name} must hold no NaN and no negative code")
        if type(self.class_count_) is not int or max(self.code_.max(), self.named_.max()) >= self.class_count_:
            raise ValueError("class_count_ must be larger than every code")
        columns = self.class_count_ if self.by == "actual" else 0
        shapes = {"logs_": (len(self.code_), columns), "offsets_": (self.class_count_,)}
        for name, shape in shapes.items():
            values = getattr(self, name)
            flat = isinstance(values, np.ndarray) and values.dtype == np.float64 and values.shape == shape
            if not flat or not np.isfinite(values).all():
                raise ValueError(f"{name} must be finite numbers of shape {shape}")
        if type(self.sharpness_) is not float or not 0 < self.sharpness_ < np.inf:
            raise ValueError("sharpness_ must be a positive number")

    def _plausible_gap(self) -> float:
        return float(np.quantile(self.gap_, 1 - _PLAUSIBILITY_SHARE * self.alpha, method="higher"))

    def _groups(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which held-out rows stand for each class: those of its code, those of all small classes, or all rows."""
        own = codes == np.arange(self.class_count_)[:, None]
        needed = rows_needed(self.alpha)
        small = own.sum(axis=1) < needed
        pool = own[small].any(axis=0)
        own[small] = pool if pool.sum() >= needed else True
        return own

    def _shared(self, groups: NDArray[np.bool_]) -> list[tuple[list[int], NDArray[np.bool_]]]:
        """The codes of classes that share held-out rows, with these rows."""
        columns: dict[bytes, list[int]] = {}
        for code, group in enumerate(groups):
            columns.setdefault(group.tobytes(), []).append(code)
        return [(codes, groups[codes[0]]) for codes in columns.values()]


def _at_least(held_out: FloatArray, values: FloatArray) -> NDArray[np.int64]:
    """How many held-out numbers are at least as large as each value."""
    return len(held_out) - np.searchsorted(np.sort(held_out), values, side="left")


def _gaps(proba: FloatArray) -> FloatArray:
    """How much less likely each class is than the most likely one, as a difference of logarithms."""
    logs = np.log(np.maximum(proba, np.finfo(np.float64).tiny))
    return np.asarray(logs.max(axis=1, keepdims=True) - logs)
