"""How much each part of a row contributes to its novelty, by exchanging it with that of the nearest normal rows."""

import numpy as np

from offmap.explain.composition import FloatArray, Indices, Mask
from offmap.explain.scoring import Scorer


def occlusion(scorer: Scorer, rows: Indices, donors: Indices) -> FloatArray:
    r"""The contribution of each part of each row, for any score.

    With $s$ the novelty, $r$ a nearest normal row, and $r_{j \leftarrow x}$ that row with part $j$ of the row $x$,

    $$\phi_j = s(r_{j \leftarrow x}) - s(r),$$

    averaged over the nearest normal rows: how much more novel a similar normal row becomes with this part. The usual
    direction, $s(x) - s(x_{j \leftarrow r})$, misses causes where there are several: as long as one is left the row
    stays novel, so that no single exchange helps. It is used for texts, in which a part means little without the
    others.

    Args:
        scorer: The model and the rows.
        rows: Which rows to explain.
        donors: For each of them, the reference rows to exchange parts with, one line per row.

    Returns:
        One line per row; parts that a row does not have contribute 0.
    """
    width = int(scorer.composition.counts.max())
    size = max(1, _AT_ONCE // ((width + 1) * donors.shape[1]))
    parts = [slice(start, start + size) for start in range(0, len(rows), size)]
    return np.concatenate([_occluded(scorer, rows[part], donors[part], width) for part in parts])


def _occluded(scorer: Scorer, rows: Indices, donors: Indices, width: int) -> FloatArray:
    takes_out = scorer.composition.takes_out
    patterns = _patterns(width, takes_out)
    shape = (len(rows), donors.shape[1], width + 1)
    grids = rows[:, None, None], donors[:, :, None], np.arange(width + 1)[None, None]
    row, donor, pattern = (np.broadcast_to(grid, shape).ravel() for grid in grids)
    # The first pattern is the whole row; a pattern of a part that the row does not have need not be scored.
    needed = pattern <= scorer.composition.counts[row]
    novelty = np.zeros(len(row))
    novelty[needed] = scorer.novelty(row[needed], donor[needed], patterns[pattern[needed]])
    whole, exchanged = np.split(novelty.reshape(shape), [1], axis=2)
    contributions = (whole - exchanged if takes_out else exchanged - whole).mean(axis=1)
    present = np.arange(width)[None] < scorer.composition.counts[rows][:, None]
    return np.where(present, contributions, 0.0)


def _patterns(width: int, takes_out: bool) -> Mask:
    """Which parts come from the normal row: none and then one alone, or all and then all but one."""
    single = np.concatenate([np.zeros((1, width), dtype=bool), np.eye(width, dtype=bool)])
    return single if takes_out else ~single


# Mixed rows that are made at once.
_AT_ONCE = 65_536
