"""A scikit-learn transformer that turns tables of any columns into feature rows."""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from offmap import parameters
from offmap.data.table.cells import time_zone
from offmap.data.table.columns import CategoryCodec, Codec, Encoded, NumberCodec, Standard, check_codec, state_of
from offmap.data.table.dates import DateCodec
from offmap.data.table.kinds import KINDS, Finding, kind_of
from offmap.data.table.problems import cell_problems, raise_problems, repeated_columns
from offmap.errors import warn_caller
from offmap.parameters import Natural

__all__ = ["ColumnsLeftOut", "TableEncoder", "needs_encoding"]


class ColumnsLeftOut(UserWarning):
    """Some columns of a table tell nothing about novelty and are not used."""


@final
@dataclass(kw_only=True, eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):
    r"""Turns the columns of a data frame into standardised features: numbers, categories, truth values, dates, gaps.

    Each column gets a kind from its training cells. Numbers are standardised in double precision; a category becomes
    one feature per frequent value and the rarity of its value; a date becomes hour, weekday and season on a circle; a
    gap becomes the mean and, if there were gaps in training, a feature that says so. Columns that are constant, or name
    the rows, are left out with a ``ColumnsLeftOut`` warning. The last feature counts the cells of a row that were
    impossible in training: unseen categories, and gaps where there were none. It is 0 for all training rows, and
    $2 \sqrt d$ per such cell for $d$ features, about the distance between two rows.

    Columns are found by name: another order and further columns make no difference, and a missing one is named.

    Args:
        kinds: Kind of columns that should not be guessed, by name: "number", "boolean", "date" or "category".
        max_categories: How many of the most frequent values of a column have a feature of their own.

    Attributes:
        columns_: What was learnt of each column that is used, by name.
        left_out_: Why each other column is left out, by name.
        identifiers_: Those of them that name the rows.
        feature_names_in_: All columns that were seen in training.

    Example:
        >>> frame = pd.DataFrame({"paid": [3.0, 5.0, None, 4.0], "country": ["FR", "DE"] * 2, "till": 1})
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", ColumnsLeftOut)
        ...     encoder = TableEncoder().fit(frame)
        >>> encoder.left_out_
        {'till': "every value is '1'"}
        >>> list(encoder.get_feature_names_out())
        ['paid value', 'paid missing', 'country is DE', 'country is FR', 'country rarity', 'unexpected']
        >>> encoder.transform(pd.DataFrame({"country": ["PE"], "paid": ["4"]})).round(1)
        array([[0. , 0. , 0. , 0. , 1.4, 4.5]])
    """

    kinds: dict[str, str] | None = None
    max_categories: Natural = 20

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Learns the kind and the range of each column; ``y`` is ignored."""
        parameters.check(self)
        frame = _frame(X)
        self._require_kinds(frame)
        raise_problems(repeated_columns(frame.columns), "X")
        found = {name: kind_of(frame[name], (self.kinds or {}).get(name)) for name in frame.columns}
        raise_problems(_all_problems(frame, found), "X")
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        self.identifiers_ = [name for name, each in found.items() if each.kind == "identifier"]
        self.left_out_ = {name: each.why for name, each in found.items() if each.why}
        used = {name: each for name, each in found.items() if not each.why}
        if not used:
            raise ValueError(f"X has no column to learn from: {_listed(self.left_out_)}")
        codecs = {name: self._codec(frame[name], each) for name, each in used.items()}
        self.columns_ = {name: {"kind": codec.kind, **state_of(codec)} for name, codec in codecs.items()}
        self._build()
        if self.left_out_:
            warn_caller(f"columns left out: {_listed(self.left_out_)}", ColumnsLeftOut)
        return self

    def transform(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """The features ``(n, d)`` of the rows of a data frame that has the columns of the training rows."""
        check_is_fitted(self, "columns_")
        frame = _frame(X)
        self._require_columns(frame)
        parts = self._encoded(frame)
        unexpected = np.sum([part.unexpected for part in parts], axis=0, dtype=np.float64)
        features = np.column_stack([part.features for part in parts])
        return np.column_stack([features, 2 * np.sqrt(features.shape[1]) * unexpected])

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """The name of each feature: the column and what the feature says of it; "unexpected" is the last."""
        check_is_fitted(self, "columns_")
        names = [f"{name} {part}" for name, codec in self._codecs.items() for part in codec.feature_names]
        return np.array([*names, "unexpected"], dtype=object)

    def schema(self) -> pd.DataFrame:
        """One line per column that was seen in training: its name, its kind, and its range or why it is left out."""
        check_is_fitted(self, "columns_")
        used = [(name, _shown_kind(codec), codec.about) for name, codec in self._codecs.items()]
        unused = [(name, "left out", why) for name, why in self.left_out_.items()]
        return pd.DataFrame([*used, *unused], columns=["column", "kind", "about"])

    def _build(self) -> None:
        """Makes the codecs from what is kept of them; loading a model calls it too."""
        if hasattr(self, "columns_"):
            self._codecs = {name: _restored(state) for name, state in self.columns_.items()}

    def _check_fitted(self) -> None:
        """Raises an error unless every column can be encoded; what a model file says of them may be anything."""
        if not hasattr(self, "columns_"):
            return
        reasons = isinstance(self.left_out_, dict) and all(isinstance(why, str) for why in self.left_out_.values())
        if not reasons or not {type(name) for name in [*self.columns_, *self.identifiers_]} <= {str}:
            raise ValueError("columns_, left_out_ and identifiers_ must hold names and texts")
        for name, codec in self._codecs.items():
            check_codec(name, codec)

    def _codec(self, column: Any, found: Finding) -> Codec:
        if found.read is None:
            return CategoryCodec.fit(column, self.max_categories)
        if found.kind == "date":
            return DateCodec.fit(found.read.values, found.form, time_zone(column))
        return NumberCodec.fit(found.read.values, truth=found.kind == "boolean")

    def _encoded(self, frame: pd.DataFrame) -> list[Encoded]:
        """The features of each column, or an error that names every cell that cannot be read."""
        columns = [(frame[name], codec) for name, codec in self._codecs.items()]
        cells = [codec.read(column) for column, codec in columns]
        problems: list[str] = []
        for (column, codec), read in zip(columns, cells, strict=True):
            if read is not None:
                problems += cell_problems(column, _shown_kind(codec), read, getattr(codec, "form", ""), fitted=True)
        raise_problems(problems, "X")
        return [codec.encode(column, read) for (column, codec), read in zip(columns, cells, strict=True)]

    def _require_columns(self, frame: pd.DataFrame) -> None:
        problems = repeated_columns([name for name in frame.columns if name in self.columns_])
        absent = [name for name in self.columns_ if name not in frame.columns]
        if absent:
            problems.append(
                f"it lacks {_quoted(absent)}, which the model was fitted on (it has {_quoted(frame.columns)})"
            )
        raise_problems(problems, "X")

    def _require_kinds(self, frame: pd.DataFrame) -> None:
        for name, kind in (self.kinds or {}).items():
            if kind not in KINDS:
                raise ValueError(f"kinds[{name!r}] must be one of {_quoted(KINDS)}; got {kind!r}")
            if name not in frame.columns:
                raise ValueError(f"kinds names the column {name!r}, which X lacks; it has {_quoted(frame.columns)}")


def needs_encoding(X: Any) -> bool:
    """Whether ``X`` is a data frame that holds more than complete columns of numbers.

    Example:
        >>> needs_encoding(pd.DataFrame({"a": [1.0, None]})), needs_encoding(pd.DataFrame({"a": [1.0, 2.0]}))
        (True, False)
    """
    if not isinstance(X, pd.DataFrame):
        return False
    plain = all(pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind) for kind in X.dtypes)
    return not plain or bool(X.isna().to_numpy().any())


def _frame(X: Any) -> pd.DataFrame:
    if not isinstance(X, pd.DataFrame):
        raise ValueError(f"X must be a pandas DataFrame, whose columns have names; got {type(X).__name__}")
    return X.set_axis([str(name) for name in X.columns], axis=1)


def _restored(state: dict[str, Any]) -> Codec:
    makers: dict[str, Any] = {codec.kind: codec for codec in (NumberCodec, CategoryCodec, DateCodec)}
    parts: dict[str, Any] = {name: Standard(**part) if isinstance(part, dict) else part for name, part in state.items()}
    return makers[parts.pop("kind")](**parts)


def _all_problems(frame: pd.DataFrame, found: dict[str, Finding]) -> list[str]:
    return [
        problem
        for name, each in found.items()
        if each.read is not None
        for problem in cell_problems(frame[name], each.kind, each.read, each.form)
    ]


def _shown_kind(codec: Codec) -> str:
    return "boolean" if isinstance(codec, NumberCodec) and codec.truth else codec.kind


def _listed(reasons: dict[str, str]) -> str:
    return "; ".join(f"{name!r}, since {why}" for name, why in reasons.items())


def _quoted(names: Any) -> str:
    return ", ".join(repr(str(name)) for name in names)
