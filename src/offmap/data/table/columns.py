"""How each kind of column becomes features: fitted on training cells, kept as plain numbers and texts.

Every codec returns features in units of the training spread, so that a distance treats columns alike, and says which
cells were impossible in training: an unseen category, or a gap in a column that had none.
"""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import kurtosis
from sklearn.preprocessing import StandardScaler

from offmap.data.table.cells import Read, as_booleans, as_numbers, as_words, is_zone

__all__ = ["GAP", "CategoryCodec", "Codec", "Encoded", "NumberCodec", "Standard", "check_codec", "state_of"]

Floats = NDArray[np.float64]
# Categories of a smaller share get no feature of their own: methods that standardise would blow it up.
_FREQUENT = 0.02
_HEAVY_TAILS = 10.0
# From this share on, an unseen value says only that the column has many values.
_COMMON_NEW_VALUES = 0.005
GAP = "\0missing"


class Encoded(NamedTuple):
    """Features of a column, and whether each cell was impossible in training."""

    features: Floats
    unexpected: NDArray[np.bool_]


class Codec(Protocol):
    """Turns the cells of one column into features."""

    kind: ClassVar[str]

    @property
    def feature_names(self) -> list[str]:
        """What each feature says, after the name of the column."""

    @property
    def about(self) -> str:
        """The range of the training cells in words."""

    def read(self, column: Any) -> Read | None:
        """The cells as numbers, to find those that are not of this kind; None if every cell is."""

    def encode(self, column: Any, read: Read | None = None) -> Encoded:
        """The features of each cell; ``read`` spares reading cells a second time."""


@dataclass(frozen=True)
class Standard:
    """Shifts and scales features to mean 0 and standard deviation 1, in double precision; gaps become 0.

    Args:
        mean: Mean of each feature.
        scale: Standard deviation of each feature; 1 where it does not vary.
        gaps: Whether the training cells had gaps: then a further feature says where a gap is.
    """

    mean: list[float]
    scale: list[float]
    gaps: bool

    @classmethod
    def fit(cls, values: Floats) -> Self:
        """Measures training values ``(n, k)``, in which NaN is a gap."""
        scaler = StandardScaler().fit(values)
        gaps = bool(np.isnan(values).any())
        return cls(np.nan_to_num(scaler.mean_).tolist(), np.nan_to_num(scaler.scale_, nan=1.0).tolist(), gaps)

    def encode(self, values: Floats) -> Encoded:
        """Standardised values, and where a gap was never seen before."""
        gap = np.asarray(np.isnan(values).any(axis=1))
        scaled: Floats = np.nan_to_num((values - self.mean) / self.scale, posinf=np.inf, neginf=-np.inf)
        features = np.column_stack([scaled, gap]) if self.gaps else scaled
        return Encoded(features, np.zeros_like(gap) if self.gaps else gap)

    def names(self, names: list[str]) -> list[str]:
        """The names of the features, with that of the gap."""
        return [*names, "missing"] if self.gaps else names


@dataclass(frozen=True)
class NumberCodec:
    r"""One feature per number, and one that says whether it is missing, if any was.

    A column with heavy tails, such as amounts, has a second feature, $\operatorname{asinh}((x - m) / s)$ with median
    $m$ and interquartile range $s$: linear in the middle and logarithmic in the tails. The number itself keeps an
    extreme value extreme; the second feature tells ordinary values apart, which beside the extremes look all the
    same.

    Args:
        truth: Whether the cells are truth values.
        low: Smallest training value.
        high: Largest training value.
        tails: Median and interquartile range of a column with heavy tails, or nothing.
        standard: Mean and spread.
    """

    kind: ClassVar[str] = "number"

    truth: bool
    low: float
    high: float
    tails: list[float]
    standard: Standard

    @classmethod
    def fit(cls, values: Floats, truth: bool = False) -> Self:
        """Measures training values, in which NaN is a gap."""
        present = values[~np.isnan(values)]
        quarter, middle, three = np.quantile(present, [0.25, 0.5, 0.75])
        heavy = not truth and three > quarter and float(kurtosis((present - middle) / (three - quarter))) > _HEAVY_TAILS
        tails = [float(middle), float(three - quarter)] if heavy else []
        standard = Standard.fit(_scales(values, tails))
        return cls(truth, float(present.min()), float(present.max()), tails, standard)

    @property
    def feature_names(self) -> list[str]:
        """The value, the same compressed if the tails are heavy, and whether it is missing."""
        return self.standard.names(["value", "compressed value"] if self.tails else ["value"])

    @property
    def about(self) -> str:
        """The range."""
        return "true or false" if self.truth else f"{self.low:g} to {self.high:g}"

    def read(self, column: Any) -> Read:
        """The cells as numbers."""
        if not self.truth:
            return as_numbers(column)
        found = as_booleans(column)
        if not found.unreadable.any():
            return found
        return min(found, _zeros_and_ones(as_numbers(column)), key=lambda read: int(read.unreadable.sum()))

    def encode(self, column: Any, read: Read | None = None) -> Encoded:
        """The standardised number, and the compressed one."""
        return self.standard.encode(_scales((read or self.read(column)).values, self.tails))


@dataclass(frozen=True)
class CategoryCodec:
    r"""One feature per frequent value (0 or 1), and the rarity of the value, $-\log p$, in standard deviations.

    A gap counts as a value. A value that was never seen has the rarity of half an occurrence. It is unexpected too,
    unless new values are common: by Good and Turing, their share is that of the values that occurred once.

    Args:
        values: The training values, the most frequent first.
        counts: How often each occurred.
        own: How many of them, from the first on, have a feature of their own.
        rarity: Mean and spread of the rarity.
    """

    kind: ClassVar[str] = "category"

    values: list[str]
    counts: NDArray[np.int64]
    own: int
    rarity: Standard

    @classmethod
    def fit(cls, column: Any, most: int) -> Self:
        """Counts the training values."""
        values, counts = np.unique(_cells(column).astype(str), return_counts=True)
        order = np.argsort(-counts, kind="stable")
        values, counts = values[order], counts[order].astype(np.int64)
        own = min(int((counts >= _FREQUENT * counts.sum()).sum()), most)
        surprise = np.repeat(_surprise(counts, counts.sum()), counts)
        return cls(values.tolist(), counts, own, Standard.fit(surprise[:, None]))

    @property
    def feature_names(self) -> list[str]:
        """The values with a feature of their own, and the rarity."""
        return [*("is missing" if value == GAP else f"is {value}" for value in self.values[: self.own]), "rarity"]

    @property
    def about(self) -> str:
        """How many values there are."""
        shown = ", ".join("(missing)" if value == GAP else value for value in self.values[:3])
        return f"{len(self.values):,} values: {shown}{', …' if len(self.values) > 3 else ''}"

    def read(self, column: Any) -> None:
        """Nothing: any cell can be a category."""

    def encode(self, column: Any, read: Read | None = None) -> Encoded:
        """Which frequent value each cell is, and how rare."""
        found = np.array([self._place.get(cell, -1) for cell in _cells(column)], dtype=np.int64)
        unseen = found < 0
        counts = np.where(unseen, 0.5, self.counts[found])
        rarity = self.rarity.encode(_surprise(counts, self.counts.sum())[:, None]).features
        features = np.column_stack([found[:, None] == np.arange(self.own), rarity]).astype(np.float64)
        return Encoded(features, unseen & (self._share_of_new_values < _COMMON_NEW_VALUES))

    @cached_property
    def _place(self) -> dict[str, int]:
        return {value: position for position, value in enumerate(self.values)}

    @property
    def _share_of_new_values(self) -> float:
        return float((self.counts == 1).sum() / self.counts.sum())


def state_of(codec: Any) -> dict[str, Any]:
    """A codec as plain values."""
    return asdict(codec)


def check_codec(name: str, codec: Any) -> None:
    """Raises an error unless a codec that was read from a file encodes a gap and texts to finite features."""
    if isinstance(codec, CategoryCodec) and (len(codec.counts) != len(codec.values) or min(codec.counts) < 1):
        raise ValueError(f"the column {name!r} must have a count of at least 1 per value")
    zone = getattr(codec, "zone", "")
    if not isinstance(zone, str) or (zone and not is_zone(zone)):
        raise ValueError(f"the column {name!r} has the time zone {zone!r}, which is not known here")
    standard = codec.rarity if isinstance(codec, CategoryCodec) else codec.standard
    numbers = np.array([standard.mean, standard.scale], dtype=np.float64)
    made = codec.encode(pd.Series([None, *getattr(codec, "values", [])[:1]], dtype=object)).features
    if not np.isfinite(numbers).all() or not (numbers[1] > 0).all() or made.shape[1] != len(codec.feature_names):
        raise ValueError(f"what is known of the column {name!r} does not fit together")
    if not np.isfinite(made).all() or not isinstance(codec.about, str):
        raise ValueError(f"the features of the column {name!r} must be finite")


def _surprise(counts: Any, total: Any) -> Floats:
    return -np.log(counts / total)


def _cells(column: Any) -> NDArray[np.object_]:
    words, missing = as_words(column)
    return np.where(missing, GAP, words)


def _scales(values: Floats, tails: list[float]) -> Floats:
    return np.column_stack([values, np.arcsinh((values - tails[0]) / tails[1])]) if tails else values[:, None]


def _zeros_and_ones(read: Read) -> Read:
    """Truth values that came as numbers: only 0 and 1 are."""
    wrong = ~np.isin(read.values, (0.0, 1.0)) & ~read.missing
    return Read(np.where(wrong, np.nan, read.values), read.missing, wrong)
