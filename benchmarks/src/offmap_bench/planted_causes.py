"""Rows and texts that are novel for a known cause, which explanations are to find."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]
SHIFT, GAP = 5.0, 2.0
"""Standard deviations by which a value is shifted, and by which a swapped value differs at least."""
JOINTS = (" and ", ". ", ", ", " ")


class Planted(NamedTuple):
    """Rows of which some values were changed.

    Args:
        rows: The changed rows.
        changed: Which values were changed.
    """

    rows: Rows
    changed: NDArray[np.bool_]


def plant(X: Rows, normal: Rows, causes: NDArray[np.intp], kind: str, rng: np.random.Generator) -> Planted:
    """Changes some features of each row.

    Args:
        X: Normal rows.
        normal: Normal rows that give the standard deviations, and the values to swap in.
        causes: How many features of each row to change.
        kind: "shifted" adds or subtracts 5 standard deviations; "swapped" takes the value of another normal row that
            differs by at least 2, so that each value is normal on its own.
        rng: Chooses features, directions and values.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> normal = rng.normal(size=(100, 4))
        >>> plant(normal[:2], normal, np.array([1, 3]), "shifted", rng).changed.sum(axis=1)
        array([1, 3])
    """
    rows, changed = X.astype(np.float64), np.zeros(X.shape, dtype=bool)
    spread = normal.std(axis=0)
    varying = np.flatnonzero(spread > 0)
    for row, count in enumerate(causes.tolist()):
        for feature in rng.choice(varying, count, replace=False).tolist():
            rows[row, feature] = _changed(rows[row, feature], normal[:, feature], spread[feature], kind, rng)
            changed[row, feature] = True
    return Planted(rows, changed)


def _changed(value: float, normal: Rows, spread: float, kind: str, rng: np.random.Generator) -> float:
    away = normal[np.abs(normal - value) >= GAP * spread]
    if kind == "swapped" and len(away):
        return float(rng.choice(away))
    return value + float(rng.choice([-1, 1])) * spread * (SHIFT if kind == "shifted" else GAP)


def top_share(contributions: Rows, changed: NDArray[np.bool_]) -> float:
    """The share of rows whose m changed features have the m largest contributions.

    Example:
        >>> top_share(np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]), np.array([[1, 1, 0], [1, 0, 1]], dtype=bool))
        0.5
    """
    rank = np.argsort(np.argsort(-contributions, axis=1, kind="stable"), axis=1)
    return float(((rank < changed.sum(axis=1, keepdims=True)) == changed).all(axis=1).mean())


def join(known: str, foreign: str, rng: np.random.Generator) -> str:
    """One text of two: the foreign clause before or behind the known one, joined by one of four joints."""
    first, second = (known, foreign) if rng.random() < 0.5 else (foreign, known)
    return f"{first.rstrip('.?! ')}{rng.choice(JOINTS)}{second}"
