"""P-values by class: a row is compared with the held-out rows of one class, the named one or each in turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from offmap.arrays import FloatArray
from offmap.calibration.conditional import rows_needed
from offmap.parameters import Fraction

# The share of alpha that is spent on telling implausible classes from plausible ones; the rest goes to the novelty.
_PLAUSIBILITY_SHARE = 0.1
Evidence = tuple[FloatArray, FloatArray]


@dataclass(kw_only=True, eq=False, repr=False)
class ClassPromise(BaseEstimator):
    r"""Conformal p-values by class, from held-out rows whose class is known.

    **Whether a row is novel** is judged among the held-out rows that the model names as it names the row, $k(x)$:

    $$p(x) = \frac{1 + \#\{i : k(x_i) = k(x), s_i \ge s(x)\}}{1 + \#\{i : k(x_i) = k(x)\}}.$$

    Of the known rows that are named $c$, at most a share $\alpha$ gets $p \le \alpha$, *for each class* $c$ and for any
    classifier; the rate over all rows is then at most $\alpha$ too. Among the rows that *are* of class $c$ the rate is
    at most $\alpha P(k = c) / P(c)$ plus the share of them that is named otherwise. Nobody knows the class of a new
    row: to flag it only if each class that it may be of rejects it bounds that rate by $\alpha$, but flags far too few.

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

    Attributes:
        novelty_: Novelty of the held-out rows.
        gap_: Their gap to their own class.
        code_: Code 0, 1, … of their class.
        named_: Code of the class that the model names.
        member_: The model that held each of them out, where there are several.
        class_count_: Number of known classes.

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
        {"novelty_", "gap_", "code_", "named_", "member_", "class_count_"}
    )

    alpha: Fraction = 0.05

    def fit(self, proba: FloatArray, novelty: FloatArray, codes: NDArray[np.int64]) -> Self:
        """Takes probabilities, novelty and class of held-out rows."""
        self.novelty_ = np.asarray(novelty, dtype=np.float64)
        self.code_ = np.asarray(codes, dtype=np.int64)
        self.named_ = proba.argmax(axis=1).astype(np.int64)
        self.gap_ = _gaps(proba)[np.arange(len(codes)), self.code_]
        self.member_ = np.zeros(len(codes), dtype=np.int64)
        self.class_count_ = int(proba.shape[1])
        return self

    @classmethod
    def joined(cls, parts: Sequence["ClassPromise"], alpha: float) -> "ClassPromise":
        """The promise of several models together, each with held-out rows of its own."""
        whole = cls(alpha=alpha)
        for name in ("novelty_", "gap_", "code_", "named_"):
            setattr(whole, name, np.concatenate([getattr(part, name) for part in parts]))
        whole.member_ = np.repeat(np.arange(len(parts)), [len(part.code_) for part in parts])
        whole.class_count_ = parts[0].class_count_
        return whole

    def at(self, alpha: float) -> "ClassPromise":
        """The promise of another rate, from the same held-out rows."""
        other = ClassPromise(alpha=alpha)
        other.__dict__.update({name: value for name, value in vars(self).items() if name.endswith("_")})
        return other

    @property
    def members(self) -> int:
        """Number of models that held rows out."""
        return int(self.member_.max()) + 1

    def p_value(self, evidence: Sequence[Evidence]) -> FloatArray:
        """The p-value of each row among the held-out rows that are named as it is.

        Args:
            evidence: Probabilities and novelty of the rows, from each of the models.
        """
        groups = self._groups(self.named_)
        at_least, compared = np.zeros((2, len(evidence[0][1])))
        for member, (proba, novelty) in enumerate(evidence):
            named = proba.argmax(axis=1)
            for code in np.unique(named):
                held_out = np.sort(self.novelty_[groups[code] & (self.member_ == member)])
                rows = named == code
                at_least[rows] += len(held_out) - np.searchsorted(held_out, novelty[rows], side="left")
                compared[rows] += len(held_out)
        return np.asarray((1 + at_least) / (1 + compared), dtype=np.float64)

    def p_values(self, evidence: Sequence[Evidence]) -> FloatArray:
        """The p-value of each row and class.

        Args:
            evidence: Probabilities and novelty of the rows, from each of the models.
        """
        groups, limit = self._groups(self.code_), self._plausible_gap()
        columns: dict[bytes, list[int]] = {}
        for code, group in enumerate(groups):
            columns.setdefault(group.tobytes(), []).append(code)
        found = np.empty((len(evidence[0][1]), self.class_count_))
        for codes in columns.values():
            rows = groups[codes[0]]
            of_member = [rows & (self.member_ == member) for member in range(len(evidence))]
            counts = [self._at_least(part, *each, codes, limit) for part, each in zip(of_member, evidence, strict=True)]
            found[:, codes] = (1 + np.sum(counts, axis=0)) / (rows.sum() + 1)
        return found

    def _at_least(
        self, rows: NDArray[np.bool_], proba: FloatArray, novelty: FloatArray, codes: list[int], limit: float
    ) -> NDArray[np.int64]:
        """How many of the held-out ``rows`` conform no better to the classes ``codes`` than each row does."""
        plausible = rows & (self.gap_ <= limit)
        near, far = np.sort(self.novelty_[plausible]), np.sort(self.gap_[rows & ~plausible])
        gaps = _gaps(proba)[:, codes]
        within = len(near) - np.searchsorted(near, novelty, side="left") + len(far)
        beyond = len(far) - np.searchsorted(far, gaps, side="left")
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


def _gaps(proba: FloatArray) -> FloatArray:
    """How much less likely each class is than the most likely one, as a difference of logarithms."""
    logs = np.log(np.maximum(proba, np.finfo(np.float64).tiny))
    return np.asarray(logs.max(axis=1, keepdims=True) - logs)
