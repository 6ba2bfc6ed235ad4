"""Side information that users give beside rows and entities: embeddings from elsewhere, and labels of rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from offmap.collaborative.entities import EntityTable
from offmap.collaborative.ids import Ids, Places, as_given, check_ids, same_kind

Embeddings = Mapping[Any, ArrayLike] | tuple[ArrayLike, ArrayLike] | pd.DataFrame
_UNEVEN = "embeddings must have one vector for each id, all of one length"


def given_vectors(embeddings: Embeddings, ids: Ids) -> NDArray[np.float32]:
    """The vectors that the user gave, in the order of ``ids``."""
    names, vectors = _as_pair(embeddings)
    keys = check_ids(names, "embeddings")
    if len(np.unique(keys)) != len(keys) or vectors.ndim != 2 or len(vectors) != len(keys):
        raise ValueError(_UNEVEN)
    if not np.isfinite(vectors).all():
        raise ValueError("embeddings holds NaN or infinities")
    same_kind(ids, keys, "embeddings")
    table = EntityTable({})
    table.add(keys, {})
    places = table.find(ids)
    if (places < 0).any():
        raise ValueError(f"embeddings lacks the entity {as_given(ids[places < 0])[0]!s}")
    return vectors[places].astype(np.float32)


def label_set(labels: ArrayLike | None) -> NDArray[Any]:
    """The distinct labels of training rows; none if there are no labels."""
    if labels is None:
        return np.empty(0)
    if pd.isna(np.asarray(labels)).any():
        raise ValueError("labels holds missing values; give them a label of their own")
    return np.unique(np.asarray(labels))


def label_codes(labels: ArrayLike | None, known: NDArray[Any], length: int) -> Places | None:
    """The place of each row's label among the known ones."""
    if labels is None:
        return None
    values = np.asarray(labels)
    if values.shape != (length,):
        raise ValueError(f"labels must have one label for each of the {length} rows of X; got shape {values.shape}")
    if not np.isin(values, known).all():
        raise ValueError("labels holds a label that was not among the fitted ones")
    return np.searchsorted(known, values)


def _as_pair(embeddings: Embeddings) -> tuple[Any, NDArray[Any]]:
    """Ids and vectors, one row each."""
    if isinstance(embeddings, pd.DataFrame):
        return embeddings.index.tolist(), embeddings.to_numpy(dtype=np.float64)
    names: Any
    vectors: Any
    names, vectors = (list(embeddings), list(embeddings.values())) if isinstance(embeddings, Mapping) else embeddings
    if len({np.shape(vector) for vector in vectors}) > 1:
        raise ValueError(_UNEVEN)
    return names, np.asarray(vectors, dtype=np.float64)
