"""How much each part of a row contributes to its novelty, by replacing it with that of the nearest normal rows."""

import numpy as np

from offmap.explain.composition import FloatArray, Indices
from offmap.explain.scoring import Scorer, finite


def occlusion(scorer: Scorer, rows: Indices, donors: Indices) -> FloatArray:
    r"""The contribution of each part of each row, for any score.

    With $s$ the novelty, $x$ the row, $r$ a nearest normal row, and $x_{j \leftarrow r}$ the row with part $j$ of $r$,

    $$\phi_j = \frac12 \bigl( s(x) - s(x_{j \leftarrow r}) + s(r_{j \leftarrow x}) - s(r) \bigr),$$

    averaged over the nearest normal rows: what is gained by taking the part out of the row, and what it costs to put
    it into a normal row. The first alone misses causes of which there are several, since each one hides the others. The
    two are the first and the last term of the Shapley value; where the score is a sum over parts they are equal.

    Args:
        scorer: The model and the rows.
        rows: Which rows to explain.
        donors: For each of them, the reference rows that give the replaced parts, one line per row.

    Returns:
        One line per row; parts that a row does not have contribute 0.
    """
    width = int(scorer.composition.counts.max())
    per_row = 2 * (width + 1) * donors.shape[1]
    size = max(1, _AT_ONCE // per_row)
    parts = [slice(start, start + size) for start in range(0, len(rows), size)]
    return np.concatenate([_occluded(scorer, rows[part], donors[part], width) for part in parts])


def _occluded(scorer: Scorer, rows: Indices, donors: Indices, width: int) -> FloatArray:
    single = np.eye(width, dtype=bool)
    none, every = np.zeros((1, width), dtype=bool), np.ones((1, width), dtype=bool)
    patterns = np.concatenate([none, every, single, ~single])
    shape = (len(rows), donors.shape[1], len(patterns))
    row, donor, pattern = (np.broadcast_to(grid, shape).ravel() for grid in _grids(rows, donors, len(patterns)))
    needed = _is_needed(patterns, scorer.composition.counts[row], pattern)
    novelty = np.zeros(len(row))
    novelty[needed] = scorer.novelty(row[needed], donor[needed], patterns[pattern[needed]])
    row_novelty, donor_novelty, out, put_in = np.split(finite(novelty).reshape(shape), [1, 2, 2 + width], axis=2)
    contributions = (row_novelty - out + put_in - donor_novelty).mean(axis=1) / 2
    return np.where(np.arange(width)[None] < scorer.composition.counts[rows][:, None], contributions, 0.0)


def _grids(rows: Indices, donors: Indices, patterns: int) -> tuple[Indices, Indices, Indices]:
    return rows[:, None, None], donors[:, :, None], np.arange(patterns)[None, None]


def _is_needed(patterns: np.ndarray, counts: Indices, pattern: Indices) -> np.ndarray:
    """Whether a pattern concerns a part that the row has."""
    width = patterns.shape[1]
    part = np.concatenate([[0, 0], np.arange(width), np.arange(width)])
    return part[pattern] < counts


# Mixed rows that are made at once.
_AT_ONCE = 65_536
