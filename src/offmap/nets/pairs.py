"""Pairs of rows of a batch that do not belong together: the negatives of contrastive losses."""

import torch
from torch import Tensor


def off_diagonal(square: Tensor) -> Tensor:
    """Drops the diagonal of square matrices: ``(…, n, n)`` becomes ``(…, n, n - 1)``.

    Example:
        >>> off_diagonal(torch.arange(9).reshape(3, 3))
        tensor([[1, 2],
                [3, 5],
                [6, 7]])
    """
    rows = square.shape[-1]
    # Without its last entry, the flattened matrix has a diagonal entry at the start of each run of n + 1.
    runs = square.flatten(-2)[..., :-1].unflatten(-1, (rows - 1, rows + 1))
    return runs[..., 1:].reshape(*square.shape[:-1], rows - 1)


def derangements(rows: int, count: int, *, shuffled: bool = True) -> Tensor:
    """Pairs each row with ``count`` different other rows; each column of the result is a derangement.

    A derangement is a permutation that leaves no row in its place. Shuffling at random, or drawing with replacement,
    would put true pairs among the negatives.

    Args:
        rows: Number of rows.
        count: Number of derangements, at most ``rows - 1``.
        shuffled: Draws from torch's global generator; otherwise row ``i`` is paired with the rows after it, which is
            enough when rows are in random order.

    Returns:
        Indices of shape ``(rows, count)``.

    Example:
        >>> derangements(4, 2, shuffled=False)
        tensor([[1, 2],
                [2, 3],
                [3, 0],
                [0, 1]])
    """
    order = torch.randperm(rows) if shuffled else torch.arange(rows)
    steps = torch.randperm(rows - 1)[:count] + 1 if shuffled else torch.arange(1, count + 1)
    places = torch.empty(rows, count, dtype=torch.long)
    places[order] = order[(torch.arange(rows)[:, None] + steps) % rows]
    return places
