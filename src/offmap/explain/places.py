"""Images: a grid of places, each replaced by the same place of a normal image."""

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from offmap.arrays import as_images
from offmap.explain.composition import Composition, FloatArray, Indices, Kind, Mask, clipped_distances


@final
class Places(Composition):
    """Images whose parts are the cells of a grid, about seven by seven, of at least two pixels by two.

    Args:
        X: Images ``(n, h, w)`` or ``(n, h, w, c)``, or flat rows with ``image_shape``.
        reference: Normal images, likewise.
        image_shape: Height and width (and channels) of the image in a flat row.

    Example:
        >>> images = Places(np.zeros((1, 28, 28)), np.ones((3, 28, 28)))
        >>> images.names(0)[0], int(images.counts[0])
        ('rows 0–3, columns 0–3', 49)
    """

    kind: ClassVar[Kind] = "image"
    most_donors: ClassVar[int] = 2

    def __init__(self, X: Any, reference: Any, image_shape: Sequence[int] | None = None) -> None:
        self._given = np.asarray(X).shape[1:]
        images = as_images(np.asarray(X), image_shape), as_images(np.asarray(reference), image_shape, "reference")
        self._X, self._reference = images if images[0].dtype == images[1].dtype else map(_intensities, images)
        if self._X.shape[1:] != self._reference.shape[1:]:
            raise ValueError(f"reference must hold images of shape {self._given}; got {self._reference.shape[1:]}")
        self.grid = _grid(*self._X.shape[1:3])
        self.counts = np.full(len(self._X), self.grid.max() + 1, dtype=np.intp)

    def mixed(self, rows: Indices, donors: Indices, replaced: Mask) -> Any:
        """Images with some places of reference images."""
        pixels = replaced[:, self.grid][..., None]
        return np.where(pixels, self._reference[donors], self._X[rows]).reshape(len(rows), *self._given)

    def distances(self) -> FloatArray:
        """Clipped distances between the mean intensities of the places."""
        return clipped_distances(self._cell_means(self._X), self._cell_means(self._reference))

    def names(self, row: int) -> tuple[str, ...]:
        """Where each place is, in pixels from the upper left corner."""
        corners = [np.argwhere(self.grid == cell) for cell in range(self.grid.max() + 1)]
        spans = [(cells.min(axis=0), cells.max(axis=0)) for cells in corners]
        return tuple(f"rows {a[0]}–{b[0]}, columns {a[1]}–{b[1]}" for a, b in spans)

    def values(self, row: int) -> tuple[Any, ...]:
        """The mean intensity of each place."""
        return tuple(self._cell_means(self._X[[row]])[0].tolist())

    def usual(self, donors: Indices) -> tuple[Any, ...]:
        """The range of the mean intensity of each place."""
        means = self._cell_means(self._reference[donors])
        return tuple(zip(means.min(axis=0).tolist(), means.max(axis=0).tolist(), strict=True))

    def reference(self, row: int) -> Any:
        """A reference image."""
        return self._reference[row]

    def image(self, row: int) -> NDArray[Any]:
        """An image to explain."""
        return self._X[row]

    def per_part(self, contributions: FloatArray) -> FloatArray:
        """The sum over the pixels of each place."""
        pixels = contributions.reshape(len(contributions), *self._X.shape[1:]).sum(axis=3)
        return self._cell_sums(pixels)

    def _cell_means(self, images: NDArray[Any]) -> FloatArray:
        scale = 255.0 if images.dtype == np.uint8 else 1.0
        sums = self._cell_sums(images.astype(np.float64).mean(axis=3) / scale)
        return sums / np.bincount(self.grid.ravel())

    def _cell_sums(self, pixels: FloatArray) -> FloatArray:
        member = np.eye(self.grid.max() + 1)[self.grid.ravel()]
        return pixels.reshape(len(pixels), -1) @ member


def _intensities(images: NDArray[Any]) -> NDArray[Any]:
    """Images in [0, 1]: bytes cannot be mixed with those."""
    return images / np.float32(255) if images.dtype == np.uint8 else images


def _grid(height: int, width: int) -> Indices:
    """The number of the place of each pixel, line by line."""
    down, across = (np.arange(side) // max(_SMALLEST, round(side / _CELLS)) for side in (height, width))
    return down[:, None] * (across.max() + 1) + across[None]


_CELLS, _SMALLEST = 7, 2
