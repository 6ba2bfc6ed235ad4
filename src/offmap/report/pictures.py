"""Images as small PNG files inside the page."""

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from offmap.report.markup import Markup, element

SIDE = 112
"""Pixels of the longer side of a small image once enlarged; at twice this a large one is reduced."""


def pictures(images: NDArray[Any], descriptions: list[str]) -> list[Markup]:
    """``<img>`` elements for images ``(n, h, w)`` or ``(n, h, w, c)``, small ones enlarged without blur."""
    sources = [f"data:image/png;base64,{base64.b64encode(png(image)).decode()}" for image in as_bytes(images)]
    pairs = zip(sources, descriptions, strict=True)
    return [element("img", src=source, alt=description) for source, description in pairs]


def as_bytes(images: NDArray[Any]) -> NDArray[np.uint8]:
    """Intensities from 0 to 255: bytes as they are, floats from [0, 1], other ranges from their extremes.

    Example:
        >>> as_bytes(np.array([[[0.0, 8.0, 16.0]]]))
        array([[[  0, 128, 255]]], dtype=uint8)
    """
    if images.dtype == np.uint8:
        return images
    finite = np.nan_to_num(images.astype(np.float64), posinf=0, neginf=0)
    low, high = finite.min(), finite.max()
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    return np.rint(255 * (finite - low) / max(high - low, np.finfo(np.float64).tiny)).astype(np.uint8)


def png(image: NDArray[np.uint8]) -> bytes:
    """One image as a PNG file, a small one enlarged without blur."""
    pixels = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
    factor = max(1, round(SIDE / max(pixels.shape[:2])))
    picture = Image.fromarray(pixels.repeat(factor, axis=0).repeat(factor, axis=1))
    picture.thumbnail((2 * SIDE, 2 * SIDE))
    stream = io.BytesIO()
    picture.save(stream, format="png", optimize=True)
    return stream.getvalue()
