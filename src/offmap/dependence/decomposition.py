"""Splits a total correlation into a sum of mutual informations.

For any split of the variables into two groups, $TC(X) = TC(X_A) + TC(X_B) + I(X_A; X_B)$. Repeating the split until
every group is a single variable leaves a sum of mutual informations.

Reference: Bai et al., Estimating Total Correlation with Mutual Information Estimators, arXiv:2011.04794, section 3.
"""

from collections.abc import Callable

Term = tuple[range, range]


def line(variables: int) -> list[Term]:
    r"""Adds one variable at a time: $\sum_i I(x_1 \dots x_i; x_{i + 1})$.

    Example:
        >>> line(3)
        [(range(0, 1), range(1, 2)), (range(0, 2), range(2, 3))]
    """
    return [(range(taken), range(taken, taken + 1)) for taken in range(1, variables)]


def tree(variables: int) -> list[Term]:
    """Splits into halves recursively; for an odd number the first half is the larger.

    Example:
        >>> tree(3)
        [(range(0, 2), range(2, 3)), (range(0, 1), range(1, 2))]
    """
    return _halves(0, variables)


def _halves(start: int, end: int) -> list[Term]:
    if end - start < 2:
        return []
    middle = (start + end + 1) // 2
    return [(range(start, middle), range(middle, end)), *_halves(start, middle), *_halves(middle, end)]


DECOMPOSITIONS: dict[str, Callable[[int], list[Term]]] = {"line": line, "tree": tree}


def terms(decomposition: str, variables: int) -> list[Term]:
    """Returns the two groups of variables of each mutual information in the sum.

    Args:
        decomposition: "line" or "tree".
        variables: Number of variables, at least 2.
    """
    if decomposition not in DECOMPOSITIONS:
        raise ValueError(f"decomposition must be one of {', '.join(map(repr, DECOMPOSITIONS))}; got {decomposition!r}")
    if variables < 2:
        raise ValueError(f"a total correlation needs at least 2 variables; got {variables}")
    return DECOMPOSITIONS[decomposition](variables)
