"""Synthetic images that should be novel to any model: uniform noise and constant images."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["constant_images", "uniform_noise"]


def uniform_noise(n: int, shape: Sequence[int], seed: int = 0) -> NDArray[np.uint8]:
    """Returns images whose pixel values are drawn independently and uniformly from 0 to 255.

    Args:
        n: Number of images.
        shape: ``(h, w)`` or ``(h, w, c)``.
        seed: Seed of the draw.

    Example:
        >>> uniform_noise(100, (28, 28)).shape
        (100, 28, 28)
    """
    return _draw(n, _image_shape(shape), seed)


def constant_images(n: int, shape: Sequence[int], seed: int = 0) -> NDArray[np.uint8]:
    """Returns images of a single grey level or colour each, drawn uniformly from 0 to 255.

    Args:
        n: Number of images.
        shape: ``(h, w)`` or ``(h, w, c)``.
        seed: Seed of the draw.

    Example:
        >>> len(np.unique(constant_images(1, (28, 28))))
        1
    """
    height, width, *channels = _image_shape(shape)
    levels = _draw(n, (1, 1, *channels), seed)
    return np.tile(levels, (1, height, width, *(1 for _ in channels)))


def _draw(n: int, shape: tuple[int, ...], seed: int) -> NDArray[np.uint8]:
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")
    return np.random.default_rng(seed).integers(0, 256, size=(n, *shape), dtype=np.uint8)


def _image_shape(shape: Sequence[int]) -> tuple[int, ...]:
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise ValueError(f"shape must be (h, w) or (h, w, c) of positive numbers, not {tuple(shape)}")
    return tuple(shape)
