"""Validation of arrays: what passes, what is refused, and how much memory it takes."""

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer
from torch import Tensor

from offmap.arrays import as_images, check_rows, chunk_size, in_chunks, to_tensor
from offmap.density import MahalanobisDetector


class Validating(BaseEstimator):
    """An estimator that only validates."""


def entered(X: Any, then: Any = None, image_shape: tuple[int, ...] | None = None) -> Any:
    """The validated rows, of ``fit`` or of ``then``."""
    estimator = Validating()
    rows = check_rows(estimator, X, reset=True, image_shape=image_shape)
    return rows if then is None else check_rows(estimator, then, reset=False, image_shape=image_shape)


NAMED = pd.DataFrame({"u": [0.0, 1.0, 2.0], "v": [3.0, 4.0, 5.0]})
IMAGES = np.random.default_rng(0).integers(256, size=(5, 4, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("X", "image_shape", "shape"),
    [
        (np.zeros((5, 3)), None, (5, 3)),
        ([[1, 2], [3, 4]], None, (2, 2)),
        (np.zeros((5, 4, 3)), None, (5, 4, 3, 1)),
        (np.zeros((5, 4, 3, 2)), None, (5, 4, 3, 2)),
        (np.zeros((5, 12)), (4, 3), (5, 4, 3, 1)),
        (np.zeros((5, 12)), (2, 2, 3), (5, 2, 2, 3)),
        (np.zeros((5, 4, 3)), (4, 3), (5, 4, 3, 1)),
    ],
)
def test_rows_get_their_shape_without_a_copy(X: Any, image_shape: Any, shape: tuple[int, ...]) -> None:
    rows = entered(X, image_shape=image_shape)
    assert rows.shape == shape
    assert not isinstance(X, np.ndarray) or np.shares_memory(rows, X)
    assert entered(X, then=X, image_shape=image_shape).shape == shape


def test_the_shape_of_a_row_is_remembered() -> None:
    estimator = Validating()
    check_rows(estimator, IMAGES, reset=True)
    assert estimator.input_shape_ == (4, 3, 1)
    check_rows(estimator, np.zeros((2, 7)), reset=True)
    assert (estimator.input_shape_, estimator.n_features_in_) == ((7,), 7)


@pytest.mark.parametrize(
    ("X", "image_shape", "message"),
    [
        ([[1, "tall"]], None, "X must hold numbers, but row 0, column 1 is 'tall'; .*TableEncoder"),
        (NAMED.assign(v=["3", "x" * 50, "5"]), None, "row 1, column 'v' is 'xxx.*x'…;"),
        ([[1, 2], [3, None]], None, "X contains NaN: row 1, column 1 is missing; fill such cells"),
        (NAMED.assign(v=[3.0, 4.0, np.inf]), None, "X contains infinity: row 2, column 'v'"),
        ([[1, 2], [3]], None, "X must have rows of one length; row 0 has 2 values, row 1 has 1"),
        (np.full((2, 2, 2), np.nan), None, r"row 0, pixel \(0, 0\) is missing; fill such cells or leave the rows out$"),
        (np.zeros(3), None, "Expected 2D array"),
        (np.zeros((0, 3)), None, "0 sample"),
        (np.zeros((3, 0)), None, "0 feature"),
        (np.zeros((3, 0, 4)), None, r"X holds images without pixels; got shape \(3, 0, 4\)"),
        (np.zeros((3, 0, 4), np.uint8), None, "X holds images without pixels"),
        (np.full((2, 2), np.nan), None, "X contains NaN"),
        (np.full((2, 2, 2), np.inf), None, "X contains infinity"),
        (np.zeros((2, 2, 2, 2, 2)), None, r"\(n, d\) features or .* images; got shape \(2, 2, 2, 2, 2\)"),
        (np.zeros((5, 12)), (4, 4), r"image_shape \(4, 4\) does not hold the 12 columns of X"),
        (np.zeros((5, 12)), (12,), r"images; got shape \(5, 12\)"),
        (np.full((2, 2, 2), 1.5), None, r"expected uint8 or floats in \[0, 1\], got float64 from 1.5 to 1.5"),
        (np.full((2, 2, 2), -0.5), None, r"expected uint8 or floats in \[0, 1\], got float64 from -0.5 to -0.5"),
        (np.full((5, 4), 7.0), (2, 2), r"expected uint8 or floats in \[0, 1\], got float64 from 7 to 7"),
        (IMAGES.astype(int), None, r"expected uint8 or floats in \[0, 1\], got int64"),
    ],
)
def test_what_cannot_pass_is_named(X: Any, image_shape: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        entered(X, image_shape=image_shape)


@pytest.mark.parametrize(
    ("fitted", "then", "message"),
    [
        (np.zeros((5, 3)), np.zeros((5, 4)), "X has 4 features, but Validating is expecting 3"),
        (np.zeros((5, 4, 3)), np.zeros((5, 3, 4)), r"rows of shape \(3, 4, 1\); the model was fitted on \(4, 3, 1\)"),
        (np.zeros((5, 4, 3)), np.zeros((5, 4, 3, 2)), r"of shape \(4, 3, 2\); the model was fitted on \(4, 3, 1\)"),
        (np.zeros((5, 4, 3)), np.zeros((5, 12)), r"rows of shape \(12,\); the model was fitted on \(4, 3, 1\)"),
        (np.zeros((5, 4)), np.zeros((5, 4, 1)), r"rows of shape \(4, 1, 1\); the model was fitted on \(4,\)"),
    ],
)
def test_rows_of_another_shape_are_refused_after_fit(fitted: Any, then: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        entered(fitted, then=then)


def test_images_become_tensors_in_0_to_1_with_channels_second() -> None:
    images = np.random.default_rng(0).integers(256, size=(5, 4, 3, 2), dtype=np.uint8)
    tensor = to_tensor(images, "cpu")
    assert tensor.dtype == torch.float32
    assert tensor.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_allclose(tensor.numpy(), np.moveaxis(images, 3, 1) / 255, rtol=1e-6)
    floats = as_images(images / 255, None)
    torch.testing.assert_close(to_tensor(floats, "cpu"), tensor)


def test_features_of_uint8_are_not_intensities() -> None:
    rows = np.array([[0, 255], [3, 4]], dtype=np.uint8)
    assert to_tensor(rows, "cpu").tolist() == rows.tolist()


def test_features_too_large_for_float32_become_infinite_without_a_warning() -> None:
    assert to_tensor(np.array([[1e300, -1e300, 1.0]]), "cpu").tolist() == [[np.inf, -np.inf, 1.0]]


@settings(deadline=None)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=3))
def test_chunks_are_powers_of_two_that_shrink_with_the_width_of_a_row(shape: list[int]) -> None:
    size = chunk_size(tuple(shape))
    assert size in (64, 128, 256, 512, 1024)
    assert size in (64, 1024) or size * np.prod(shape) <= 2**16 < 2 * size * np.prod(shape)
    assert size <= chunk_size((1, *shape[1:]))
    assert chunk_size((20,)) == 1024
    assert chunk_size((224, 224, 3)) == 64


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_chunks_are_all_of_one_size_and_join_to_the_whole(n: int) -> None:
    rows = np.arange(n * 1100, dtype=np.float64).reshape(n, 1100)
    sizes: list[int] = []

    def apply(X: Tensor) -> tuple[Tensor, Tensor]:
        sizes.append(len(X))
        return X[:, 0], X[:, :2] * 2

    first, doubled = in_chunks(apply, rows, "cpu")
    assert set(sizes) == {64}
    np.testing.assert_array_equal(first, rows[:, 0].astype(np.float32))
    np.testing.assert_array_equal(doubled, 2 * rows[:, :2].astype(np.float32))


def test_channels_that_come_first_are_named() -> None:
    with pytest.raises(
        ValueError, match=r"channels last; got shape \(4, 3, 16, 16\), which looks as if they came first"
    ):
        as_images(np.zeros((4, 3, 16, 16), dtype=np.float32), None)
    assert as_images(np.zeros((4, 3, 16, 3), dtype=np.float32), None).shape == (4, 3, 16, 3)


MILLION_ROWS = """
import resource, sys
import numpy as np
import pandas as pd
import torch
from offmap.density import VAEDetector

torch.set_num_threads(1)
X = np.random.default_rng(0).normal(size=(1_000_000, 20))
detector = VAEDetector(epochs=1, random_state=0).fit(X[:500])
detector.novelty(X[:2000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(detector.novelty(X)) == len(X)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux only")
def test_a_million_rows_are_scored_in_little_memory_beside_them() -> None:
    """The novelty itself takes 12 MB; all rows at once, the first hidden layer alone would take 1 GB."""
    ended = subprocess.run([sys.executable, "-c", MILLION_ROWS], check=True, capture_output=True, text=True)
    assert int(ended.stdout) * 1024 < 100e6


@pytest.mark.parametrize("kind", ["float64", "float32", "int64", "Float64"])
def test_a_frame_with_the_names_of_the_features_gives_its_numbers(kind: Any) -> None:
    np.testing.assert_array_equal(entered(NAMED, NAMED.astype(kind)), NAMED.to_numpy())


@pytest.mark.parametrize(
    ("then", "message"),
    [
        (NAMED[["v", "u"]], "same order"),
        (NAMED.rename(columns={"v": "w"}), "feature names"),
        (NAMED.assign(v=[3.0, np.nan, 5.0]), "NaN"),
        (NAMED.assign(v=[3.0, np.inf, 5.0]), "infinity"),
        (NAMED[:0], "0 sample"),
    ],
)
def test_a_frame_that_differs_from_the_fitted_one_is_refused(then: pd.DataFrame, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        entered(NAMED, then)


def test_large_numbers_whose_sum_overflows_are_finite() -> None:
    large = np.full((4, 2), np.finfo(np.float32).max)
    np.testing.assert_array_equal(entered(np.zeros((2, 2), np.float32), large), large)


@pytest.mark.parametrize("then", [None, pa.Table.from_pandas(NAMED)])
def test_tables_of_pyarrow_are_refused_with_the_remedy(then: Any) -> None:
    given = pa.Table.from_pandas(NAMED) if then is None else NAMED
    with pytest.raises(ValueError, match=r"X is a Table of pyarrow; X.to_pandas\(\) makes rows of it"):
        entered(given, then)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_what_is_under_a_mask_is_missing(dtype: Any) -> None:
    plain = np.arange(6).reshape(3, 2).astype(dtype)
    masked = np.ma.masked_equal(plain, 3)
    with pytest.raises(ValueError, match="NaN: row 1, column 1 is missing"):
        entered(masked)
    with pytest.raises(ValueError, match="NaN: row 1, column 1 is missing"):
        entered(plain, masked)
    np.testing.assert_array_equal(entered(plain, np.ma.masked_equal(plain, 99)), plain)


def test_an_encoder_sees_what_is_under_a_mask_as_missing() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    missing = np.random.default_rng(1).random(X.shape) < 0.1
    masked = np.ma.masked_array(np.where(missing, 999.0, X), missing)
    left_out = np.where(missing, np.nan, X)
    models = [
        MahalanobisDetector(encoder=SimpleImputer(), calibration=0.5, random_state=0).fit(rows)
        for rows in (masked, left_out)
    ]
    assert models[0].novelty(masked).tolist() == models[1].novelty(left_out).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_tensors_with_gradients_and_of_any_precision_are_read(dtype: Any) -> None:
    plain = np.array([[1.0, 2.0], [3.0, 4.5]])
    tensor = torch.tensor(plain, dtype=dtype, requires_grad=True)
    for found in (entered(tensor), entered(plain, tensor)):
        np.testing.assert_array_equal(found, plain)
