"""How a total correlation comes apart into mutual informations.

For any split of the variables in two groups, $TC(X) = TC(X_A) + TC(X_B) + I(X_A; X_B)$: split on until no group has
two variables, and a sum of mutual informations is left.

Reference: Bai et al., Estimating Total Correlation with Mutual Information Estimators, arXiv:2011.04794, section 3.
"""

from collections.abc import Callable

Term = tuple[range, range]


def line(variables: int) -> list[Term]:
    r"""Takes in one variable after another: $\sum_i I(x_1 \dots x_i; x_{i + 1})$.

    Example:
        >>> line(3)
        [(range(0, 1), range(1, 2)), (range(0, 2), range(2, 3))]
    """
    return [(range(taken), range(taken, taken + 1)) for taken in range(1, variables)]


def tree(variables: int) -> list[Term]:
    """Splits in halves, and each half again; of an odd number the first half is the larger.

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
    """The two groups of variables of each mutual information in the sum.

    Args:
        decomposition: "line" or "tree".
        variables: How many, at least 2.
    """
    if decomposition not in DECOMPOSITIONS:
        raise ValueError(f"decomposition must be 'line' or 'tree'; got {decomposition!r}")
    if variables < 2:
        raise ValueError(f"a total correlation needs at least 2 variables; got {variables}")
    return DECOMPOSITIONS[decomposition](variables)
