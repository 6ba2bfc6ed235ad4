"""The smallest change after which a row is normal, found by search and verified by the model."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from offmap.explain.composition import FloatArray, Indices, Mask
from offmap.explain.scoring import Scorer, finite


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """A changed row that the model does not flag.

    Args:
        changed: The parts that were changed, as positions.
        names: Their names.
        before: What they held.
        after: What they hold now, taken from one normal row; of a text, nothing.
        row: The changed row, as the model takes it.
        donor: Position of that normal row in the reference.
        novelty: Novelty of the changed row, as the model scored it.
        p_value: Its p-value; None if the model has none.
    """

    changed: tuple[int, ...]
    names: tuple[str, ...]
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    row: Any
    donor: int
    novelty: float
    p_value: float | None


@dataclass(frozen=True)
class Changes:
    """For each row, which parts to take from which reference row.

    Args:
        donor: The reference row.
        replaced: The parts, one line per row.
        found: Whether the model does not flag the changed row.
    """

    donor: Indices
    replaced: Mask
    found: Mask


def smallest_changes(scorer: Scorer, rows: Indices, donors: Indices, contributions: FloatArray) -> Changes:
    """Finds few parts to replace so that each row passes.

    The parts of the largest contributions are replaced, more and more of them, by those of each of the nearest normal
    rows; then each replaced part is put back if the row passes without that change as well. Values come from one normal
    row, so that the changed parts agree with one another. Replacing every part gives that normal row itself, so a
    change is found if it passes.

    Args:
        scorer: The model and the rows.
        rows: Which rows to change.
        donors: For each of them, the reference rows to take values from.
        contributions: Contribution of each part, one line per row.
    """
    present = np.arange(contributions.shape[1])[None] < scorer.composition.counts[rows][:, None]
    order = np.argsort(np.where(present, -contributions, np.inf), axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
    changes = _fewest_of_the_strongest(scorer, rows, donors, rank)
    return _put_back(scorer, rows, changes)


def _fewest_of_the_strongest(scorer: Scorer, rows: Indices, donors: Indices, rank: Indices) -> Changes:
    """For each row the shortest list of its strongest parts that suffices, over all donors."""
    donor, replaced = donors[:, 0].copy(), np.zeros_like(rank, dtype=bool)
    found = np.zeros(len(rows), dtype=bool)
    for size in _sizes(rank.shape[1]):
        open_ = np.flatnonzero(~found)
        if not len(open_):
            break
        masks = rank[open_] < size
        each = donors.shape[1]
        verdict = scorer.assess(np.repeat(rows[open_], each), donors[open_].ravel(), np.repeat(masks, each, axis=0))
        novelty = np.where(verdict.novel, np.inf, finite(verdict.novelty)).reshape(len(open_), each)
        passes = np.isfinite(novelty).any(axis=1)
        won = open_[passes]
        donor[won] = donors[won, novelty[passes].argmin(axis=1)]
        replaced[won], found[won] = masks[passes], True
    return Changes(donor, replaced, found)


def _put_back(scorer: Scorer, rows: Indices, changes: Changes) -> Changes:
    """Undoes changes that are not needed, one per row at a time, the one that leaves the row most normal first."""
    replaced = changes.replaced.copy()
    active = changes.found & (replaced.sum(axis=1) > 1)
    for _ in range(_MOST_PUT_BACK):
        at = np.flatnonzero(active)
        if not len(at):
            break
        which, part = np.nonzero(replaced[at])
        masks = replaced[at][which]
        masks[np.arange(len(part)), part] = False
        verdict = scorer.assess(rows[at][which], changes.donor[at][which], masks)
        novelty = np.full(replaced[at].shape, np.inf)
        novelty[which, part] = np.where(verdict.novel, np.inf, finite(verdict.novelty))
        best = novelty.argmin(axis=1)
        better = np.isfinite(novelty[np.arange(len(at)), best])
        replaced[at[better], best[better]] = False
        active[at] = better & (replaced[at].sum(axis=1) > 1)
    return Changes(changes.donor, replaced, changes.found)


def _sizes(parts: int) -> list[int]:
    """How many parts to replace: every number up to 4, then steps of a half; what is too many is put back later."""
    sizes = [1]
    while sizes[-1] < parts:
        sizes.append(min(parts, max(sizes[-1] + 1, sizes[-1] * 3 // 2)))
    return sizes


# With many parts this bounds the search, not the validity: what is left changed is a few parts more than needed.
_MOST_PUT_BACK = 64
