"""Networks that others are trained through, but that stay as they are."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def frozen(*modules: nn.Module) -> Iterator[None]:
    """Lets gradients pass through ``modules`` without reaching their parameters, which also spares the work.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> with frozen(layer):
        ...     layer.weight.requires_grad
        False
        >>> layer.weight.requires_grad
        True
    """
    for module in modules:
        module.requires_grad_(False)
    try:
        yield
    finally:
        for module in modules:
            module.requires_grad_(True)
