"""Swapping codes between data, to see what a group controls."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Coder(Protocol):
    """A fitted model that maps data to named codes and back."""

    def encode(self, X: ArrayLike) -> dict[str, NDArray[np.float32]]:
        """Returns the codes of data."""
        ...

    def decode(self, codes: Mapping[str, ArrayLike]) -> NDArray[np.float32]:
        """Returns the data of codes."""
        ...


def swap_grid(model: Coder, sources: ArrayLike, lenders: ArrayLike, group: str) -> NDArray[Any]:
    """Decodes each source with one group of codes of each lender: ``(lenders, sources, …)``.

    Args:
        model: A fitted model.
        sources: Data that keep their other codes.
        lenders: Data that lend the codes of ``group``.
        group: Name of the group.
    """
    kept, lent = model.encode(sources), model.encode(lenders)
    if group not in kept:
        raise ValueError(f"group must be one of {', '.join(map(repr, kept))}; got {group!r}")
    count = len(next(iter(kept.values())))
    return np.stack([model.decode(kept | {group: np.repeat(code[None], count, axis=0)}) for code in lent[group]])
