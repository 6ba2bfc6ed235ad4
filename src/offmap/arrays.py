"""Validation of arrays, once, as they come in; and their conversion to tensors, chunk by chunk.

Rows are ``(n, d)`` features or ``(n, h, w)`` and ``(n, h, w, c)`` images; images are ``uint8`` or floats in [0, 1].
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from offmap.numeric_rows import numeric_rows
from offmap.precision import Shift
from offmap.threads import side_by_side, workers_for

Rows = NDArray[Any]
FloatArray = NDArray[np.float64]
Shape = tuple[int, ...]
_SHIFT = ("column_shift_", "column_scale_")


def check_rows(estimator: Any, X: ArrayLike, *, reset: bool, image_shape: Sequence[int] | None = None) -> Rows:
    """Validates ``X`` and returns it as ``(n, d)`` features or ``(n, h, w, c)`` images, copying only if it must.

    Args:
        estimator: Gets the shape of a row as ``input_shape_`` if ``reset``; else ``X`` must have that shape.
        X: The input as given by the user.
        reset: True in ``fit``.
        image_shape: Shape of the image in each row of a flat ``X``.
    """
    _refuse_arrow(X)
    X = _from_torch(with_missing(X))
    if reset:
        _forget_shift(estimator)
    elif (plain := _plain(estimator, X)) is not None:
        return shifted(estimator, plain)
    _refuse_dates(X)
    rows = numeric_rows(estimator, X, reset=reset, named=reset or len(estimator.input_shape_) == 1)
    _refuse_dates(rows)
    rows = as_images(rows, image_shape) if image_shape is not None or rows.ndim > 2 else rows
    if reset:
        estimator.input_shape_ = rows.shape[1:]
        _learn_shift(estimator, rows)
    elif rows.shape[1:] != tuple(estimator.input_shape_):
        raise ValueError(f"X has rows of shape {rows.shape[1:]}; the model was fitted on {estimator.input_shape_}")
    return shifted(estimator, rows)


def with_missing(X: Any) -> Any:
    """A masked array with NaN under its mask, so that nobody reads the values there; anything else as it is.

    Example:
        >>> with_missing(np.ma.masked_equal([[1, 999]], 999))
        array([[ 1., nan]])
    """
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.ma.is_masked(X):
        return X.data
    kind = X.dtype if X.dtype.kind == "f" else np.float64 if X.dtype.kind in "biu" else object
    return np.ma.filled(X.astype(kind), np.nan)


def _from_torch(X: Any) -> Any:
    """A tensor that NumPy can read: without its gradient, on the processor, in a precision that NumPy knows."""
    if not isinstance(X, Tensor):
        return X
    X = X.detach().cpu()
    return (X.float() if X.dtype == torch.bfloat16 else X).numpy()


def _refuse_arrow(X: Any) -> None:
    """Scikit-learn takes a pyarrow table for a list of columns, and drops their names."""
    if type(X).__module__.startswith("pyarrow"):
        raise ValueError(f"X is a {type(X).__name__} of pyarrow; X.to_pandas() makes rows of it")


def _refuse_dates(X: Any) -> None:
    """Dates would be taken for their number of nanoseconds, and a missing one for a very negative number."""
    dtypes = getattr(X, "dtypes", None)
    found = [getattr(X, "dtype", None)] if dtypes is None else list(np.atleast_1d(np.asarray(dtypes, dtype=object)))
    if any(getattr(dtype, "kind", "") in ("m", "M") for dtype in found):
        raise ValueError("X holds dates or durations; give numbers, such as the seconds since a date, or the hour")


def _forget_shift(estimator: Any) -> None:
    for name in _SHIFT:
        estimator.__dict__.pop(name, None)


def _learn_shift(estimator: Any, rows: Rows) -> None:
    found = Shift.fit(rows)
    if found is not None:
        estimator.column_shift_, estimator.column_scale_ = found


def shifted(estimator: Any, rows: Rows) -> Rows:
    """Rows in the units that a fitted estimator computes in, where single precision could not hold its columns."""
    if not hasattr(estimator, "column_shift_"):
        return rows
    return Shift(estimator.column_shift_, estimator.column_scale_).apply(rows)


def unshifted(estimator: Any, rows: Rows) -> Rows:
    """Rows that a fitted estimator keeps, in the units that the user gave."""
    if not hasattr(estimator, "column_shift_"):
        return rows
    return Shift(estimator.column_shift_, estimator.column_scale_).undo(rows)


def check_fitted_rows(estimator: Any) -> None:
    """Raises a ``ValueError`` unless what ``check_rows`` left on a fitted estimator fits together."""
    shape = estimator.input_shape_
    if not isinstance(shape, tuple) or len(shape) not in (1, 3) or not all(type(n) is int and n > 0 for n in shape):
        raise ValueError(f"input_shape_ must be (d,) or (h, w, c); got {shape!r}")
    # Images that were given as flat rows have another number of features.
    width = getattr(estimator, "n_features_in_", 1)
    if type(width) is not int or width < 1:
        raise ValueError(f"n_features_in_ must be a positive integer; got {width!r}")
    names = getattr(estimator, "feature_names_in_", None)
    given = isinstance(names, np.ndarray) and names.dtype.kind == "O" and names.shape == (width,)
    if not given and hasattr(estimator, "feature_names_in_"):
        raise ValueError("feature_names_in_ must hold one name per feature")
    for name in _SHIFT:
        column = getattr(estimator, name, np.ones(shape))
        whole = isinstance(column, np.ndarray) and column.dtype == np.float64 and column.shape == shape
        if not whole or not np.isfinite(column).all() or hasattr(estimator, name) != hasattr(estimator, _SHIFT[0]):
            raise ValueError(f"{name} must hold one number per feature")
    if not (getattr(estimator, "column_scale_", np.ones(1)) > 0).all():
        raise ValueError("column_scale_ must be positive")


def trial_rows(estimator: Any) -> Rows:
    """Two rows of the shape that a model was fitted on; their values are intensities as well as features."""
    return np.stack([np.zeros(estimator.input_shape_, np.float32), np.ones(estimator.input_shape_, np.float32)])


def _plain(estimator: Any, X: Any) -> Rows | None:
    """``X`` as an array if it holds finite floats of the right shape, so that the slow general check can be skipped.

    A model that knows the names of its features takes a frame with these names in this order.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        kinds = set(X.dtypes) if hasattr(X, "columns") else set()
        X = X.to_numpy() if len(kinds) == 1 and np.array_equal(X.columns, names) else None
    if type(X) is not np.ndarray or X.dtype not in (np.float32, np.float64):
        return None
    right = X.ndim == 2 and len(X) > 0 and X.shape[1:] == tuple(estimator.input_shape_)
    return X if right and _all_finite(X) else None


def _all_finite(X: Rows) -> bool:
    """One sum tells that all are finite without an array of answers; one that overflows leaves the question open."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum())) or bool(np.isfinite(X).all())


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

    The last chunk is padded with zeros, and each chunk is computed on one thread: matrix products of another height or
    on another number of threads may round differently, and a row must score to the same bytes whatever rows come with
    it. Chunks are computed side by side.

    Args:
        function: Maps a chunk to tensors with one entry per row.
        rows: The rows.
        device: Where torch computes.
        width: How many numbers ``function`` computes per row on the way, if they are more than the row has.
    """
    size = chunk_size((max(prod(rows.shape[1:]), width),))
    starts = range(0, len(rows), size)
    kept = rows.dtype if rows.dtype == np.uint8 else np.float32

    @torch.inference_mode()
    def made_of(start: int) -> list[Rows]:
        chunk = rows[start : start + size]
        full = np.zeros((size, *rows.shape[1:]), dtype=kept)
        # Features beyond the range of float32 become infinite, and score as infinitely novel.
        with np.errstate(over="ignore"):
            full[: len(chunk)] = chunk
        return [out.cpu().numpy()[: len(chunk)] for out in function(to_tensor(full, device))]

    found = side_by_side(made_of, starts, workers_for(len(starts), device))
    joined: tuple[Rows, ...] = ()
    for start, parts in zip(starts, found, strict=True):
        # Written into one array: small results kept between large buffers would fragment the memory.
        joined = joined or tuple(np.empty((len(rows), *part.shape[1:]), dtype=part.dtype) for part in parts)
        for whole, part in zip(joined, parts, strict=True):
            whole[start : start + len(part)] = part
    return joined


def start_of_equal_end(rows: Rows) -> int:
    """The place of the first of the equal rows at the end, such as those that fill up a chunk."""
    different = np.flatnonzero((rows != rows[-1]).any(axis=1))
    return int(different[-1]) + 1 if len(different) else 0


def chunk_size(row_shape: Shape) -> int:
    """A power of two from 64 to 1024: smaller for wide rows, so that one row alone stays cheap."""
    fitting = 2**16 // prod(row_shape)
    return 1 << min(max(fitting, 64), 1024).bit_length() - 1
