"""How well each of many tasks tells its own rows from others."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Marks = NDArray[np.bool_]


def task_aurocs(familiarity: NDArray[Any], nominal: Marks, anomalous: Marks) -> NDArray[np.float64]:
    r"""AUROC of each task between its nominal and its anomalous rows; NaN where one kind is missing.

    With the ranks $R_i$ of the $n$ nominal rows among these and the $m$ anomalous ones, it is
    $(\sum_i R_i - n(n + 1)/2) / nm$; ties count half.

    Args:
        familiarity: Of each row to each task: rows × tasks.
        nominal: Which rows should be familiar to which task.
        anomalous: Which rows should not be; rows that are neither do not count.

    Example:
        >>> scores = np.array([[3.0, 1.0], [2.0, 2.0], [1.0, 5.0]])
        >>> high, low = np.array([[1, 1], [0, 0], [0, 0]], bool), np.array([[0, 0], [1, 1], [0, 1]], bool)
        >>> task_aurocs(scores, high, low).tolist()
        [1.0, 0.0]
    """
    found = np.full(familiarity.shape[1], np.nan)
    for task, (scores, high, low) in enumerate(zip(familiarity.T, nominal.T, anomalous.T, strict=True)):
        n_high, n_low = int(high.sum()), int(low.sum())
        if n_high and n_low:
            ranks = rankdata(np.concatenate([scores[high], scores[low]]))[:n_high]
            found[task] = (ranks.sum() - n_high * (n_high + 1) / 2) / (n_high * n_low)
    return found
