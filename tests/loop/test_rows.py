"""Rows as bytes and back."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from offmap.loop.rows import as_given, pack, unpack

SHAPES = st.sampled_from([(1, 2), (3, 4), (2, 3, 3), (2, 2, 2, 3)])
DTYPES = st.sampled_from([np.float32, np.float64, np.uint8, np.int64, np.bool_])


@settings(max_examples=40)
@given(st.tuples(DTYPES, SHAPES).flatmap(lambda kind: arrays.arrays(kind[0], kind[1])))
def test_rows_come_back_bit_for_bit_and_may_be_written_to(rows: np.ndarray[Any, Any]) -> None:
    found = unpack(pack(rows))
    assert (found.dtype, found.shape, found.tobytes()) == (rows.dtype, rows.shape, rows.tobytes())
    found[:] = 0


def test_rows_of_several_types_are_stacked_as_numpy_does() -> None:
    packed = [*pack(np.array([[1.5, 2.5]])), *pack(np.array([[3, 4]])), *pack(np.array([[5.5, 6.5]], np.float32))]
    np.testing.assert_array_equal(unpack(packed), [[1.5, 2.5], [3, 4], [5.5, 6.5]])


def test_a_row_in_another_order_of_memory_comes_back() -> None:
    image = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    packed = [pack(image[None])[0], pack(np.arange(6.0).reshape(1, 2, 3))[0]]
    for row in unpack(packed):
        np.testing.assert_array_equal(row, image)


def test_texts_come_back() -> None:
    assert unpack(pack(["a", "ä\n", ""])).tolist() == ["a", "ä\n", ""]


def test_nothing_is_unpickled() -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        unpack(pack(np.array([[object()]], dtype=object)))


def test_texts_are_kept_to_the_last_character_in_as_much_memory_as_they_need() -> None:
    texts = ["ends in NUL\0", "é😀", "x" * 100_000, *["short"] * 500]
    found = unpack(pack(as_given(texts)))
    assert found.tolist() == texts
    # An array of NumPy's own texts would give every row the room of the longest.
    assert as_given(texts).nbytes + found.nbytes < 100_000
