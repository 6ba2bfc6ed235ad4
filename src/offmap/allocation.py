"""Bounds how much memory a network may ask for while it is built from what a file says."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

# Every way in which the constructors of networks make a tensor of a given size.
_FACTORIES = frozenset(
    {
        *(torch.empty, torch.zeros, torch.ones, torch.full, torch.eye, torch.arange, torch.linspace),
        *(torch.rand, torch.randn, torch.randint, torch.randperm, torch.empty_strided),
        *(torch.tril_indices, torch.triu_indices),
        *(Tensor.new_empty, Tensor.new_zeros, Tensor.new_ones, Tensor.new_full),
    }
)
# What a tensor costs apart from its numbers, so that very many small ones are noticed too.
_OVERHEAD = 256


class TooLarge(ValueError):
    """More memory was asked for than allowed."""


class Allowance(TorchFunctionMode):
    """Refuses to make tensors of more numbers in total than allowed; each is measured on the meta device first.

    Args:
        numbers: How many numbers may be made, at a price of 256 for each tensor.

    Example:
        >>> with Allowance(10_000):
        ...     small = torch.zeros(20, 20)
        >>> with Allowance(10_000):
        ...     large = torch.nn.Linear(10**9, 10**9)
        Traceback (most recent call last):
        offmap.allocation.TooLarge: it asks for more memory than its content needs
    """

    def __init__(self, numbers: int) -> None:
        super().__init__()
        self.left = numbers

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Measures what ``func`` would make, and then calls it."""
        given = dict(kwargs or {})
        if func in _FACTORIES:
            sized = {name: value for name, value in given.items() if name not in ("generator", "out", "pin_memory")}
            self.left -= func(*args, **sized | {"device": "meta"}).numel() + _OVERHEAD
            if self.left < 0:
                raise TooLarge("it asks for more memory than its content needs")
        return func(*args, **given)


def allowance_for(sizes: Iterable[int]) -> Allowance:
    """Several times what the tensors of a file take: networks are built once, with masks and buffers of their own."""
    stored = sum(size + _OVERHEAD for size in sizes)
    return Allowance(8 * stored + (1 << 22))
