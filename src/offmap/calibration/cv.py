"""CV+: every row trains and every row calibrates, with one model per fold."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from offmap.calibration.conformal import CalibrationWarning
from offmap.calibration.split import Split
from offmap.errors import warn_caller
from offmap.parameters import Limit
from offmap.random_state import draw_seed

Folds = Annotated[int, Limit("at least 2", lambda value: value >= 2)]
# The threshold of a member decides nothing; at this rate it needs one row only.
_MEMBER_ALPHA = 0.5


def fold_splits(groups: NDArray[np.int64], folds: int, rng: np.random.Generator) -> list[Split]:
    """Training and held-out rows of each fold: every row is held out once, each group spread over the folds.

    The only row of a group is held out of no fold, since its class would be unknown there.

    Example:
        >>> [split.held_out.tolist() for split in fold_splits(np.array([0, 0, 0, 0, 1]), 2, np.random.default_rng(0))]
        [[0, 2], [1, 3]]
    """
    rows = np.arange(len(groups))
    shuffled = rng.permutation(len(groups))
    by_group = shuffled[np.argsort(groups[shuffled], kind="stable")]
    free = by_group[np.bincount(groups)[groups[by_group]] > 1]
    fold = np.full(len(groups), -1)
    fold[free] = np.arange(len(free)) % folds
    return [Split(rows[fold != k], rows[fold == k]) for k in range(folds) if (fold == k).any()]


def fit_members(model: Any, X: Any, y: Any, splits: list[Split], rng: np.random.Generator) -> tuple[Any, ...]:
    """Fits one copy of ``model`` per fold, calibrated on the rows of the fold.

    Args:
        model: Has ``_fit_split(X, y, split)``, which trains on some rows and calibrates on others.
        X: All rows.
        y: Their labels, or None.
        splits: Training and held-out rows of each fold.
        rng: Draws the seed of each copy.
    """
    _require_training_rows(splits)
    settings = {"calibration": 1 / len(splits), "alpha": _MEMBER_ALPHA, "confidence": None}
    members = []
    for split in splits:
        member = clone(model).set_params(**settings, random_state=draw_seed(rng))
        members.append(member._fit_split(X, y, split))
    return tuple(members)


def _require_training_rows(splits: list[Split]) -> None:
    if len(splits) < 2:
        raise ValueError('calibration="cv" needs rows in at least 2 folds; give more rows, or calibration as a share')
    if min(len(split.train) for split in splits) < 2:
        raise ValueError('calibration="cv" leaves fewer than 2 rows to train on; give more rows')


def first_member(model: Any) -> Any:
    """The model of the first fold where there are folds, else the model itself."""
    return next(iter(getattr(model, "members_", ())), model)


def require_one_model(model: Any, question: str) -> None:
    """Raises a ``ValueError`` for models of folds, where a question has an answer for one model only."""
    if getattr(model, "members_", ()):
        raise ValueError(f'{question} needs one model; fit with calibration as a share, not "cv"')


def warn_of_lost_rows(rows: int, calibrating: int, alpha: float) -> None:
    """Warns if more than a share ``alpha`` of the rows is held out of no fold."""
    if rows - calibrating > alpha * rows:
        warn_caller(
            f"{rows - calibrating} of {rows} rows are the only ones of their class; they train in every fold and "
            "calibrate in none, and the promised rate does not cover their classes",
            CalibrationWarning,
        )
