"""Rows and images as the tensors that networks take, and back."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array
from torch import Tensor

from offmap.nets import Standardise


@dataclass(frozen=True)
class Inputs:
    """Converts arrays of one shape: rows are standardised, images become ``(n, channels, height, width)``.

    Attributes:
        shape: Shape of one row or image.
        scaler: Mean and scale of the features of rows; None for images.
    """

    shape: tuple[int, ...]
    scaler: Standardise | None

    @classmethod
    def fit(cls, X: ArrayLike) -> Self:
        """Reads the shape of ``X``, and the mean and scale of rows."""
        values = _checked(X)
        if values.ndim > 2:
            return cls(values.shape[1:], None)
        scaler = Standardise(values.shape[1]).fit(torch.from_numpy(values))
        return cls(values.shape[1:], scaler)

    @property
    def tensor_shape(self) -> tuple[int, ...]:
        """Shape of one row, ``(features,)``, or of one image, ``(channels, height, width)``."""
        if self.scaler is not None:
            return self.shape
        return (*self.shape[2:], 1)[:1] + self.shape[:2]

    def to_tensor(self, X: ArrayLike) -> Tensor:
        """Checks an array against the fitted shape and converts it."""
        values = _checked(X)
        if values.shape[1:] != self.shape:
            raise ValueError(f"X must have rows of shape {self.shape}, as in fit; got {values.shape[1:]}")
        tensor = torch.from_numpy(values)
        if self.scaler is not None:
            return self.scaler(tensor)
        return tensor.reshape(len(tensor), *self.shape[:2], -1).permute(0, 3, 1, 2)

    def to_array(self, tensor: Tensor) -> NDArray[np.float32]:
        """Converts the output of a decoder to the shape and scale of the fitted array."""
        if self.scaler is not None:
            return (tensor * self.scaler.scale + self.scaler.mean).numpy()
        return tensor.permute(0, 2, 3, 1).reshape(len(tensor), *self.shape).numpy()


def _checked(X: ArrayLike) -> NDArray[np.float32]:
    """Finite float32 values in a memory layout of their own; ``uint8`` images are mapped to [-1, 1]."""
    values: NDArray[Any] = check_array(
        X, dtype=None, ensure_2d=False, allow_nd=True, ensure_min_samples=1, input_name="X"
    )
    if values.ndim not in (2, 3, 4):
        raise ValueError(f"X must have shape (n, d), (n, h, w) or (n, h, w, c); got {values.shape}")
    if values.ndim > 2 and values.dtype == np.uint8:
        return values.astype(np.float32) / 127.5 - 1
    if values.ndim > 2 and np.abs(values).max() > 1:
        raise ValueError("X must hold images as uint8, or as floats from -1 to 1; got larger values")
    return np.array(values, dtype=np.float32, order="K")
