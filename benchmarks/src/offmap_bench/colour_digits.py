r"""Coloured digits: grey images in [-1, 1] times a random colour $(R, G, B) \sim U[0, 1]^3$ each.

Reference: Esser, Rombach and Ommer, A Disentangling Invertible Interpretation Network, arXiv:2004.13166.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate, pad

from offmap.data import Data, DataNotFound, load
from offmap.dependence.disentangle import CodeGroup

SIDE = 32
# The share of the bundled digits that serves as a test split, which they do not have.
_TEST_SHARE = 0.25
# The codes of the thesis. The style holds what neither the digit nor the colour says.
GROUPS = {
    "digit": CodeGroup(32, target="class"),
    "colour": CodeGroup(32, target="fraction", weight=10.0),
    "style": CodeGroup(64),
}


@dataclass(frozen=True)
class ColourDigits:
    """Coloured images with the digit and the colour of each.

    Args:
        grey: The images before they were painted, ``(n, 1, 32, 32)`` in [-1, 1].
        digits: The digit on each, from 0 to 9.
        colours: Red, green and blue of each, in [0, 1].
    """

    grey: Tensor
    digits: Tensor
    colours: Tensor

    def __len__(self) -> int:
        return len(self.grey)

    @property
    def images(self) -> Tensor:
        """The painted images ``(n, 3, 32, 32)``."""
        return paint(self.grey, self.colours)

    @property
    def pixels(self) -> NDArray[np.float32]:
        """The painted images ``(n, 32, 32, 3)`` as an array."""
        return to_pixels(self.images)

    @property
    def targets(self) -> dict[str, NDArray[np.generic]]:
        """The targets of the groups of codes."""
        return {"digit": self.digits.numpy(), "colour": self.colours.numpy()}

    def repainted(self, colours: Tensor) -> Tensor:
        """Returns the same handwriting in other colours."""
        return paint(self.grey, colours)

    def some(self, rows: Tensor) -> Self:
        """Returns the digits of the given rows."""
        return type(self)(self.grey[rows], self.digits[rows], self.colours[rows])


def paint(grey: Tensor, colours: Tensor) -> Tensor:
    """Multiplies each grey image by its colour; background and stroke have opposite signs.

    Example:
        >>> paint(torch.tensor([[[[-1.0, 1.0]]]]), torch.tensor([[0.5, 0.0, 1.0]])).squeeze()
        tensor([[-0.5000,  0.5000],
                [-0.0000,  0.0000],
                [-1.0000,  1.0000]])
    """
    return grey * colours[:, :, None, None]


def to_pixels(images: Tensor) -> NDArray[np.float32]:
    """Turns images ``(n, c, h, w)`` into an array ``(n, h, w, c)``."""
    return images.permute(0, 2, 3, 1).numpy()


def to_images(pixels: NDArray[np.float32]) -> Tensor:
    """Turns an array ``(n, h, w, c)`` into images ``(n, c, h, w)``."""
    return torch.from_numpy(pixels).permute(0, 3, 1, 2)


def colour_digits(split: str = "train", *, count: int | None = None, seed: int = 0) -> ColourDigits:
    """Paints MNIST, or the digits that come with scikit-learn if MNIST is not on this machine.

    Args:
        split: "train" or "test".
        count: Number of images, drawn at random; all by default.
        seed: Seed of the colours and of the draw.

    Example:
        >>> digits = colour_digits("test", count=100)
        >>> digits.images.shape, digits.colours.shape
        (torch.Size([100, 3, 32, 32]), torch.Size([100, 3]))
    """
    if split not in ("train", "test"):
        raise ValueError(f"split must be 'train' or 'test'; got {split!r}")
    try:
        data = load("mnist", split)
    except DataNotFound:
        data = _bundled(split)
    return painted(data, count=count, seed=seed)


def bundled_digits(split: str = "train", *, count: int | None = None, seed: int = 0) -> ColourDigits:
    """Paints the digits that come with scikit-learn; a quarter of them is the test split."""
    return painted(_bundled(split), count=count, seed=seed)


def painted(data: Data, *, count: int | None = None, seed: int = 0) -> ColourDigits:
    """Paints grey images of digits, each in a random colour."""
    assert data.y is not None
    if count is not None and not 1 <= count <= len(data.X):
        raise ValueError(f"count must be from 1 to {len(data.X)}, the number of images; got {count}")
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(data.X))[:count]
    colours = torch.from_numpy(rng.random((len(rows), 3), dtype=np.float32))
    return ColourDigits(_to_grey(data.X[rows]), torch.from_numpy(np.ascontiguousarray(data.y[rows])), colours)


def _bundled(split: str) -> Data:
    digits = load("digits")
    order = np.random.default_rng(0).permutation(len(digits.X))
    first = round(_TEST_SHARE * len(order))
    rows = order[:first] if split == "test" else order[first:]
    assert digits.y is not None
    return Data(digits.X[rows], digits.y[rows], name=digits.name)


def _to_grey(images: NDArray[np.generic]) -> Tensor:
    """Images ``(n, h, w)`` as ``(n, 1, 32, 32)`` in [-1, 1]: 28 pixels get a margin, fewer are enlarged."""
    scale = 255.0 if images.dtype == np.uint8 else 1.0
    grey = torch.from_numpy(np.ascontiguousarray(images, dtype=np.float32))[:, None] / scale
    margin = (SIDE - grey.shape[-1]) // 2
    if margin > SIDE // 4:
        return interpolate(grey, (SIDE, SIDE), mode="bilinear") * 2 - 1
    return pad(grey, [margin] * 4) * 2 - 1
