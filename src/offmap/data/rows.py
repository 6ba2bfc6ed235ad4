"""Rows with labels and a name, as all readers return them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["Data", "as_texts"]

Kind = Literal["images", "text", "features", "table"]


@dataclass(frozen=True, eq=False)
class Data:
    """Rows ``X`` with their labels ``y``.

    Args:
        X: Images ``(n, h, w)`` or ``(n, h, w, c)``, features ``(n, d)``, an ``(n,)`` array of Python strings, or an
            ``(n, d)`` array of Python objects if a table holds more than numbers.
        y: One label per row, or None if there are no labels.
        name: Name of the data set, or the path of the file.
        class_names: Name of each integer label, if known.
        feature_names: Name of each feature, if known.
        frame: The features of a table, with the type of each column.
        identity: What tells the rows apart, to be kept beside their scores: named columns, files of images, texts.

    Example:
        >>> data = Data(as_texts(["pay a bill", "book a flight"]), np.array(["pay", "travel"]), name="intents")
        >>> len(data), data.kind, data.y[0]
        (2, 'text', np.str_('pay'))
    """

    X: NDArray[Any]
    y: NDArray[Any] | None = None
    name: str = ""
    class_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    frame: pd.DataFrame | None = None
    identity: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        name = self.name or "Data"
        if not self.X.ndim or not len(self.X):
            raise ValueError(f"{name}: X must have at least one row, not the shape {self.X.shape}")
        numeric = self.X.dtype.kind in "buif" and self.X.ndim >= 2
        if not numeric and self.frame is None and not (self.X.dtype == object and self.X.ndim == 1):
            raise ValueError(
                f"{name}: X must be an array of numbers with two or more dimensions or a 1-D array of strings, "
                f"not {self.X.dtype} of shape {self.X.shape}"
            )
        if self.y is not None and self.y.shape != (len(self.X),):
            raise ValueError(f"{name}: y must have shape ({len(self.X)},), one label per row, not {self.y.shape}")

    def __len__(self) -> int:
        return len(self.X)

    def part(self, places: NDArray[Any]) -> "Data":
        """The rows at ``places``, with all that belongs to them."""
        return replace(
            self,
            X=self.X[places],
            y=None if self.y is None else self.y[places],
            frame=None if self.frame is None else self.frame.iloc[places],
            identity=None if self.identity is None else self.identity.iloc[places],
        )

    @property
    def rows(self) -> Any:
        """The rows as a data frame if they are a table or the names of the features are known, else ``X``."""
        if self.frame is not None:
            return self.frame
        return pd.DataFrame(self.X, columns=list(self.feature_names)) if self.feature_names else self.X

    @property
    def kind(self) -> Kind:
        """Kind of the rows: ``"images"``, ``"text"``, ``"table"`` or ``"features"``, which are numbers."""
        if self.frame is not None:
            return "table"
        if self.X.dtype == object:
            return "text"
        return "features" if self.X.ndim == 2 else "images"


def as_texts(texts: Iterable[str]) -> NDArray[np.object_]:
    """Returns texts as a 1-D object array of strings, which supports masks and does not pad to the longest text.

    Example:
        >>> as_texts(["pay a bill", "book a flight"])[np.array([False, True])]
        array(['book a flight'], dtype=object)
    """
    return np.array([str(text) for text in texts], dtype=object)
