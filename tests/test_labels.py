"""Labels of every type come back as they went in, with an unknown label that is none of them."""

from typing import Any

import numpy as np
import pytest

from offmap.labels import choose_unknown_label, known_classes, with_unknown


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int64])
def test_unknown_is_minus_one_beside_integers_of_any_type(dtype: Any) -> None:
    classes, codes = known_classes(np.array([200 % 127, 3, 3], dtype=dtype))
    unknown = choose_unknown_label(classes, None)
    labels = with_unknown(classes[codes], np.array([False, True, False]), unknown)
    assert labels.tolist() == [73, -1, 3]
    assert labels.dtype.kind == "i"


def test_labels_of_twenty_digits_are_refused_rather_than_rounded() -> None:
    with pytest.raises(ValueError, match="beyond 64 bits"):
        known_classes(np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64))
    classes, codes = known_classes(np.array([2**63 - 1, 2**63 - 2], dtype=np.uint64))
    assert with_unknown(classes[codes], np.array([False, True]), -1).tolist() == [2**63 - 1, -1]


def test_strings_are_not_cut() -> None:
    labels = with_unknown(np.array(["a", "b"]), np.array([True, False]), "none of these")
    assert labels.tolist() == ["none of these", "b"]
