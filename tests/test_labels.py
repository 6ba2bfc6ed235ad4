"""Labels of every type come back as they went in, with an unknown label that is none of them."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offmap.labels import as_numbers, check_classes, check_labels, choose_unknown_label, known_classes, with_unknown


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int64])
def test_unknown_is_minus_one_beside_integers_of_any_type(dtype: Any) -> None:
    classes, codes = known_classes(np.array([200 % 127, 3, 3], dtype=dtype))
    unknown = choose_unknown_label(classes, None)
    labels = with_unknown(classes[codes], np.array([False, True, False]), unknown)
    assert labels.tolist() == [73, -1, 3]
    assert labels.dtype.kind == "i"


@pytest.mark.parametrize("dtype", ["Int64", "UInt8", "boolean"])
def test_pandas_integers_stay_integers(dtype: str) -> None:
    y = pd.Series([1, 0, 1], dtype=dtype)
    found = check_labels(object(), np.zeros((3, 1)), y)
    assert (found.dtype, found.tolist()) == (np.dtype(np.int64), [1, 0, 1])
    with pytest.raises(ValueError, match="y contains NaN"):
        check_labels(object(), np.zeros((3, 1)), pd.Series([1, None, 1], dtype=dtype))


@pytest.mark.parametrize("values", [[1, 0, 1], ["bee", "ant", "bee"]])
def test_columns_of_other_libraries_are_labels(values: list[Any]) -> None:
    # As polars' series, Arrow's columns have no type of NumPy.
    column = pa.table({"kind": values})["kind"]
    assert check_labels(object(), np.zeros((3, 1)), column).tolist() == values


def test_labels_of_twenty_digits_are_refused_rather_than_rounded() -> None:
    with pytest.raises(ValueError, match="beyond 64 bits"):
        known_classes(np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64))
    classes, codes = known_classes(np.array([2**63 - 1, 2**63 - 2], dtype=np.uint64))
    assert with_unknown(classes[codes], np.array([False, True]), -1).tolist() == [2**63 - 1, -1]


def test_strings_are_not_cut() -> None:
    labels = with_unknown(np.array(["a", "b"]), np.array([True, False]), "none of these")
    assert labels.tolist() == ["none of these", "b"]


ROWS = np.zeros((4, 1))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", None, "b", "a"], "only integers or only strings; got NoneType and str"),
        (np.array(["a", 1, "b", "a"], dtype=object), "got int and str"),
        (np.array([2**70, 1, 2, 3], dtype=object), "beyond 64 bits"),
        (np.array([0, 1, 2, 3], dtype="datetime64[D]"), r"got datetime64\[D\]; y.astype\(str\) makes strings"),
        (np.array([b"a", b"b", b"a", b"b"]), "must hold integers or strings"),
        (["a", "a\0", "b", "b"], "must not end in NUL"),
        (["a", "\ud800", "b", "b"], "half a surrogate pair"),
    ],
)
def test_labels_that_are_none_are_told_of_in_one_line(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as refusal:
        check_labels(None, ROWS, y)
    assert len(str(refusal.value).splitlines()) == 1


def test_strings_of_every_type_and_booleans_are_labels() -> None:
    words = ["a", "b", "a", "b"]
    for y in (np.array(words, dtype=np.dtypes.StringDType()), pd.Series(words), pd.Series(words, dtype="category")):
        assert check_labels(None, ROWS, y).tolist() == words
    classes, _ = known_classes(check_labels(None, ROWS, [True, False, True, False]))
    assert classes.tolist() == [0, 1]
    assert with_unknown(classes, np.array([True, False]), choose_unknown_label(classes, None)).tolist() == [-1, 1]


@pytest.mark.parametrize("words", [["12345678901234567890", "1"], ["1" * 19, "2"], ["0x1", "2"], ["1_0", "2"], ["a"]])
def test_words_that_are_not_exactly_numbers_stay_words(words: list[str]) -> None:
    assert as_numbers(words) is None


@given(st.lists(st.integers(-(10**18) + 1, 10**18 - 1), min_size=1))
def test_integers_keep_every_digit(numbers: list[int]) -> None:
    found = as_numbers([str(number) for number in numbers])
    assert found is not None
    assert found.tolist() == numbers


@pytest.mark.parametrize(
    ("classes", "unknown"),
    [
        (np.array([1, 1]), -1),
        (np.array([1, np.nan]), -1),
        (np.array([[1, 2]]), -1),
        ([1, 2], -1),
        (np.array([1, 2]), 2),
        (np.array([1, 2]), "unknown"),
        (np.array(["a", "b"]), -1),
        (np.array([1, 2]), None),
        (np.array(["a", 7], dtype=object), "unknown"),
    ],
)
def test_classes_that_no_fit_leaves_are_refused(classes: Any, unknown: Any) -> None:
    with pytest.raises(ValueError, match=r"classes_|unknown_label|only strings"):
        check_classes(classes, unknown)


def test_the_unknown_label_is_free_beside_the_smallest_number() -> None:
    classes = np.array([-(2**63), -2, -1, 4])
    unknown = choose_unknown_label(classes, None)
    assert unknown == -3
    assert with_unknown(classes, np.array([False, True, False, True]), unknown).tolist() == [-(2**63), -3, -1, -3]
