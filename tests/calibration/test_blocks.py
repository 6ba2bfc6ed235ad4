"""Rows in blocks: the same bytes as all rows at once, and memory that does not grow with rows times classes."""

import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest

from offmap.calibration import blocks
from offmap.openset import MSPClassifier

RNG = np.random.default_rng(0)
ROWS, LABELS = RNG.normal(size=(300, 3)), np.arange(300) % 3


@pytest.mark.parametrize(
    "as_given", [np.asarray, np.ndarray.tolist, lambda rows: pd.DataFrame(rows, columns=list("abc"))]
)
def test_blocks_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch, as_given: Any) -> None:
    rows = as_given(ROWS)
    model = MSPClassifier(hidden=(4,), epochs=1, calibration=0.5, random_state=0).fit(rows, LABELS)
    whole = model.novelty(rows).tobytes(), model.predict(rows).tobytes()
    monkeypatch.setattr(blocks, "_MOST", 21)
    asked: list[int] = []
    monkeypatch.setattr(MSPClassifier, "_checked", _counted(MSPClassifier._checked, asked))
    assert (model.novelty(rows).tobytes(), model.predict(rows).tobytes()) == whole
    assert max(asked) == 7
    assert sum(asked) == 2 * len(ROWS)


def _counted(checked: Any, asked: list[int]) -> Any:
    def count(self: Any, X: Any) -> Any:
        asked.append(len(X))
        return checked(self, X)

    return count


def test_labels_of_many_rows_and_classes_need_little_memory() -> None:
    rows, labels = RNG.normal(size=(4000, 3)), np.arange(4000) % 2000
    model = MSPClassifier(hidden=(2,), epochs=1, batch_size=2000, random_state=0).fit(rows, labels)
    many = RNG.normal(size=(20_000, 3))
    tracemalloc.start()
    model.predict(many)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # All probabilities would be 320 MB.
    assert peak < 160e6
