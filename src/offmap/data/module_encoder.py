"""A torch network as an encoder of rows."""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from torch import nn

from offmap.arrays import in_chunks
from offmap.parameters import Device

__all__ = ["ModuleEncoder"]


@final
@dataclass(kw_only=True, eq=False, repr=False)
class ModuleEncoder(TransformerMixin, BaseEstimator):
    """Turns rows into the outputs of a torch network, which is not trained.

    Every method makes one by itself from ``encoder=network``. Images reach the network as ``(n, c, h, w)`` with
    intensities in [0, 1], features as ``(n, d)``; what it returns is flattened to one row each. A model file keeps the
    weights and the import path of the network's class. That class must be made without arguments, and
    ``offmap.load(path, trusted=["my.module.Network"])`` states that it may be imported.

    Args:
        module: The network.
        device: Where torch computes, such as "cpu" or "cuda".

    Example:
        >>> ModuleEncoder(module=nn.Flatten()).fit_transform(np.ones((2, 4, 4), dtype=np.float32)).shape
        (2, 16)
    """

    module: nn.Module
    device: Device = "cpu"

    def fit(self, X: Any, y: object = None) -> Self:
        """Does nothing: the network is trained already."""
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """The outputs of the network, one flat row each."""
        rows = np.asarray(X)
        images = rows[..., None] if rows.ndim == 3 else rows
        network = self.module.to(self.device).eval()
        (found,) = in_chunks(lambda part: (network(part).flatten(1),), images, self.device)
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return True
