"""Validation of arrays, once, as they come in; and their conversion to tensors, chunk by chunk.

Rows are ``(n, d)`` features or ``(n, h, w)`` and ``(n, h, w, c)`` images; images are ``uint8`` or floats in [0, 1].
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, validate_data
from torch import Tensor

Rows = NDArray[Any]
FloatArray = NDArray[np.float64]
Shape = tuple[int, ...]


def check_rows(estimator: Any, X: ArrayLike, *, reset: bool, image_shape: Sequence[int] | None = None) -> Rows:
    """Validates ``X`` and returns it as ``(n, d)`` features or ``(n, h, w, c)`` images, copying only if it must.

    Args:
        estimator: Gets the shape of a row as ``input_shape_`` if ``reset``; else ``X`` must have that shape.
        X: The input as given by the user.
        reset: True in ``fit``.
        image_shape: Shape of the image in each row of a flat ``X``.
    """
    if not reset and _known_to_fit(estimator, X):
        return np.asarray(X)
    if reset or len(estimator.input_shape_) == 1:
        rows = validate_data(estimator, X, reset=reset, allow_nd=True, dtype="numeric")
    else:
        rows = check_array(X, allow_nd=True, dtype="numeric", input_name="X", estimator=estimator)
    rows = as_images(rows, image_shape) if image_shape is not None or rows.ndim > 2 else rows
    if reset:
        estimator.input_shape_ = rows.shape[1:]
    elif rows.shape[1:] != tuple(estimator.input_shape_):
        raise ValueError(f"X has rows of shape {rows.shape[1:]}; the model was fitted on {estimator.input_shape_}")
    return rows


def _known_to_fit(estimator: Any, X: Any) -> bool:
    """Whether ``X`` is a plain array of the right shape, so that the slow general check can be skipped."""
    if type(X) is not np.ndarray or X.dtype not in (np.float32, np.float64) or hasattr(estimator, "feature_names_in_"):
        return False
    return X.ndim == 2 and len(X) > 0 and X.shape[1:] == tuple(estimator.input_shape_) and bool(np.isfinite(X).all())


def holds_text(X: Any) -> bool:
    """Whether ``X`` is a text, or a list, array or series of texts."""
    if isinstance(X, str):
        return True
    flat = isinstance(X, list | tuple) or getattr(X, "ndim", 0) == 1
    return flat and len(X) > 0 and isinstance(next(iter(X)), str)


def as_images(rows: Rows, image_shape: Sequence[int] | None, argument: str = "X") -> Rows:
    """Reshapes images to ``(n, h, w, c)`` and refuses values that are not intensities."""
    if image_shape is not None and rows.ndim == 2:
        if prod(image_shape) != rows.shape[1]:
            raise ValueError(
                f"image_shape {tuple(image_shape)} does not hold the {rows.shape[1]} columns of {argument}"
            )
        rows = rows.reshape(len(rows), *image_shape)
    if rows.ndim not in (3, 4):
        raise ValueError(
            f"{argument} must be (n, d) features or (n, h, w) or (n, h, w, c) images; got shape {rows.shape}"
        )
    if rows.ndim == 4 and rows.shape[1] in (1, 3) and rows.shape[3] > 4:
        raise ValueError(
            f"{argument} must be (n, h, w, c) images, with channels last; got shape {rows.shape}, which looks as if "
            "they came first; X.transpose(0, 2, 3, 1) puts them last"
        )
    if rows.size == 0:
        raise ValueError(f"{argument} holds images without pixels; got shape {rows.shape}")
    if rows.dtype != np.uint8 and (rows.min() < 0 or rows.max() > 1):
        values = f"{rows.dtype} from {rows.min():g} to {rows.max():g}"
        raise ValueError(f"{argument} holds images; expected uint8 or floats in [0, 1], got {values}")
    return rows if rows.ndim == 4 else rows[..., None]


def to_tensor(rows: Rows, device: str) -> Tensor:
    """Makes float tensors: features ``(n, d)``, images ``(n, c, h, w)`` in [0, 1] with channels last in memory."""
    scale = 255.0 if rows.ndim == 4 and rows.dtype == np.uint8 else 1.0
    # Features beyond the range of float32 become infinite, and score as infinitely novel.
    with np.errstate(over="ignore"):
        tensor = torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32)).to(device)
    tensor = tensor / scale if scale != 1 else tensor
    return tensor.permute(0, 3, 1, 2) if rows.ndim == 4 else tensor


def in_chunks(
    function: Callable[[Tensor], tuple[Tensor, ...]], rows: Rows, device: str, width: int = 0
) -> tuple[Rows, ...]:
    """Applies ``function`` to ``rows`` in chunks of one fixed size and joins what it returns.

    The last chunk is padded with zeros: matrix products of another height may round differently, and a row must score
    to the same bytes whatever rows come with it.

    Args:
        function: Maps a chunk to tensors with one entry per row.
        rows: The rows.
        device: Where torch computes.
        width: How many numbers ``function`` computes per row on the way, if they are more than the row has.
    """
    size = chunk_size((max(prod(rows.shape[1:]), width),))
    starts = range(0, len(rows), size)

    @torch.inference_mode()
    def made_of(start: int) -> list[Rows]:
        chunk = rows[start : start + size]
        full = np.zeros((size, *rows.shape[1:]), dtype=rows.dtype)
        full[: len(chunk)] = chunk
        return [out.cpu().numpy()[: len(chunk)] for out in function(to_tensor(full, device))]

    joined: tuple[Rows, ...] = ()
    for start, parts in zip(starts, map(made_of, starts), strict=True):
        # Written into one array: small results kept between large buffers would fragment the memory.
        joined = joined or tuple(np.empty((len(rows), *part.shape[1:]), dtype=part.dtype) for part in parts)
        for whole, part in zip(joined, parts, strict=True):
            whole[start : start + len(part)] = part
    return joined


def chunk_size(row_shape: Shape) -> int:
    """A power of two from 64 to 1024: smaller for wide rows, so that one row alone stays cheap."""
    fitting = 2**16 // prod(row_shape)
    return 1 << min(max(fitting, 64), 1024).bit_length() - 1
