"""Square matrices without their diagonal."""

from torch import Tensor


def off_diagonal(square: Tensor) -> Tensor:
    """The entries ``(…, n, n - 1)`` of matrices ``(…, n, n)`` that are not on the diagonal.

    Example:
        >>> import torch
        >>> off_diagonal(torch.arange(9).reshape(3, 3))
        tensor([[1, 2],
                [3, 5],
                [6, 7]])
    """
    *before, rows, _ = square.shape
    # Without its last entry, the flat matrix has an entry of the diagonal at the start of every n + 1.
    stretches = square.flatten(-2)[..., :-1].reshape(*before, rows - 1, rows + 1)
    return stretches[..., 1:].reshape(*before, rows, rows - 1)
