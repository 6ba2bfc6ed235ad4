"""Blocks of rows, where what is computed of all rows at once would not fit into memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

# Numbers that are held at a time: 64 MB of doubles.
_MOST = 1 << 23


def in_blocks(function: Callable[[Any], NDArray[Any]], X: Any, width: int) -> NDArray[Any]:
    """Applies ``function`` to blocks of rows and joins what it returns.

    Args:
        function: Maps rows to one entry per row, from that row alone.
        X: The rows; what is no array, table or list is passed on as it is.
        width: How many numbers ``function`` holds per row, such as one per class.

    Example:
        >>> in_blocks(lambda rows: rows.sum(axis=1), np.ones((3, 2)), width=10**7)
        array([2., 2., 2.])
    """
    size = max(_MOST // width, 1)
    if not isinstance(X, np.ndarray | pd.DataFrame | list) or len(X) <= size:
        return function(X)
    starts = range(0, len(X), size)
    return np.concatenate([function(_safe_indexing(X, np.arange(at, min(at + size, len(X))))) for at in starts])
