"""Groups that are no new class: rows of a known class that came out unusual by chance, or its missing edge."""

import math
from collections import Counter
from collections.abc import Sequence

from scipy.stats import chi2

from offmap.loop.state import Label, Row

# Share of the rows that the model must take for the same class.
_AGREE = 0.8
# The probability with which a group of rows of a known class is taken for a new class.
_ERROR = 0.05


def joined_class(rows: Sequence[Row], limit: float) -> Label | None:
    r"""The known class that the rows of a group may well be of, by what the model says of them; None if there is none.

    The p-values of rows of a known class are uniform, so those that wait have $p / l$ uniform, with the largest p-value
    $l$ that makes a row wait. Fisher's statistic $-2 \sum \log(p_i / l)$ then has $2n$ degrees of freedom. A new class
    has smaller p-values.

    Args:
        rows: The rows of the group.
        limit: Rows with a p-value up to this one wait.

    Reference: Fisher, Statistical Methods for Research Workers, 1932, section 21.1.

    Example:
        >>> rows = [Row(n, 1, False, "card lost", 0.3, p, True) for n, p in enumerate([0.03, 0.08, 0.11, 0.17, 0.2])]
        >>> joined_class(rows, limit=0.2)
        'card lost'
        >>> joined_class([Row(n, 1, True, "card lost", 0.9, 0.01, True) for n in range(5)], limit=0.2) is None
        True
    """
    p_values = [row.p_value for row in rows if row.p_value is not None]
    (label, count) = Counter(row.closest for row in rows).most_common(1)[0]
    if len(p_values) < len(rows) or count < _AGREE * len(rows):
        return None
    fisher = -2 * sum(math.log(min(p / limit, 1.0)) for p in p_values)
    return label if chi2.sf(fisher, 2 * len(rows)) > _ERROR else None
