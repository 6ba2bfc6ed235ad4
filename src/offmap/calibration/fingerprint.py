"""What tells one foreign model from another: its class, and what it says of a few rows."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from torch import Tensor

from offmap.arrays import FloatArray
from offmap.scores import Outputs

# Few enough to be small in a file, and enough that two models do not agree on all of them.
_PROBES = 16


@dataclass(kw_only=True, eq=False, repr=False)
class Fingerprint(BaseEstimator):
    """Recognises a model that a file cannot hold, so that a promise is not given to another one.

    Attributes:
        model_: The path of the model's class.
        probes_: The first calibration rows, as they were given.
        novelty_: Their novelty.

    Example:
        >>> taken = Fingerprint().fit(np.linalg.norm, np.ones((3, 2)), np.ones(3))
        >>> taken.differs(np.linalg.norm, lambda rows: 2 * np.ones(3))
        'it scores the rows stored in the file differently'
    """

    def fit(self, model: Any, X: Any, novelty: FloatArray) -> Self:
        """Takes the fingerprint of a model with the novelty that it gives to rows."""
        self.model_ = class_path(model)
        self.probes_ = _as_content(X)
        self.novelty_ = np.asarray(novelty[:_PROBES], dtype=np.float64)
        return self

    @property
    def rows(self) -> Any:
        """The first calibration rows, as they were given."""
        return _from_content(self.probes_)

    def differs(self, model: Any, novelty: Any) -> str:
        """Why ``model``, with its function ``novelty`` of rows, is another model; empty if it is the same."""
        if class_path(model) != self.model_:
            return f"it is a {class_path(model)}"
        try:
            found = np.asarray(novelty(self.rows), dtype=np.float64)
        except (ValueError, TypeError, RuntimeError) as error:
            return f"it cannot score the rows stored in the file: {error}"
        # Another machine may round differently in the last digits.
        same = found.shape == self.novelty_.shape and np.allclose(found, self.novelty_, rtol=1e-4, atol=1e-7)
        return "" if same else "it scores the rows stored in the file differently"


def class_path(model: Any) -> str:
    """Module and name of a model's class; of a function, its own."""
    named = model if hasattr(model, "__qualname__") else type(model)
    return f"{named.__module__}.{named.__qualname__}"


def _as_content(X: Any) -> dict[str, Any]:
    """The first rows in a form that a file can hold."""
    if isinstance(X, Outputs):
        first = X.take(slice(0, _PROBES))
        return {"kind": "outputs", "features": first.features, "logits": first.logits}
    some: Any = X[:_PROBES] if isinstance(X, list | tuple | Tensor) else _first(X)
    if hasattr(some, "to_pandas"):
        some = some.to_pandas()
    if isinstance(some, pd.DataFrame):
        return {"kind": "frame", "columns": list(some), "values": [some[name].to_numpy() for name in some]}
    if isinstance(some, pd.Series):
        some = some.tolist()
    dense = some.toarray() if issparse(some) else some  # type: ignore[attr-defined] # every sparse matrix has it
    return {"kind": "rows", "rows": list(dense) if isinstance(dense, list | tuple) else dense}


def _first(X: Any) -> Any:
    return _safe_indexing(X, np.arange(min(_PROBES, X.shape[0])))


def _from_content(content: dict[str, Any]) -> Any:
    if content["kind"] == "outputs":
        return Outputs(content["features"], content["logits"])
    if content["kind"] == "frame":
        return pd.DataFrame(dict(zip(content["columns"], content["values"], strict=True)))
    return content["rows"]
