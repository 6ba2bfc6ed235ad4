"""What every rival is held to on scikit-learn's digits, of which 7, 8 and 9 are unknown."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits

import offmap
from offmap.metrics import auroc, f1_open

Array = NDArray[Any]

X, Y = load_digits(return_X_y=True)
X = X / 16
IN_TRAINING = (np.arange(len(X)) < 1200) & (Y < 7)
TRAIN_X, TRAIN_Y = X[IN_TRAINING], Y[IN_TRAINING]
TEST_X, TEST_Y = X[1200:], Y[1200:]
KNOWN = TEST_Y < 7


def blobs(*sizes: int, width: int = 4) -> tuple[Array, Array]:
    """Clusters of the given sizes, far from each other."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(len(y), width)) + 6 * np.eye(max(width, len(sizes)))[y, :width], y


def rejected(model: Any, rows: Array) -> float:
    """The share of rows that the model calls unknown."""
    return float(np.mean(model.predict(rows) == model.unknown_label_))


def require_skill(model: Any, *, closed: float, separation: float, found: float) -> None:
    """Known digits get their names, unknown ones stand out, and the own rule finds them."""
    assert np.mean(model.predict_closed(TEST_X[KNOWN]) == TEST_Y[KNOWN]) > closed
    assert auroc(model.novelty(TEST_X[KNOWN]), model.novelty(TEST_X[~KNOWN])) > separation
    assert f1_open(TEST_Y, model.predict(TEST_X), model.classes_, model.unknown_label_) > found
    np.testing.assert_allclose(model.predict_proba(TEST_X).sum(axis=1), 1, rtol=1e-6)


def require_same_bytes(model: Any, folder: Path) -> None:
    """A row scores the same alone, in company, in another order and after saving."""
    whole = model.novelty(TEST_X)
    order = np.random.default_rng(0).permutation(len(TEST_X))
    assert model.novelty(TEST_X[order]).tobytes() == whole[order].tobytes()
    assert model.novelty(TEST_X[7:8]).tobytes() == whole[7:8].tobytes()
    model.save(folder / "model.safetensors")
    loaded = offmap.load(folder / "model.safetensors")
    assert loaded.novelty(TEST_X).tobytes() == whole.tobytes()
    assert (loaded.predict(TEST_X) == model.predict(TEST_X)).all()


def require_small_data_works(cls: Any, **parameters: Any) -> None:
    """Two classes, a class of one row, one row a class, and rows that are all the same."""
    twins = np.zeros((12, 4)), np.arange(12) % 2
    for rows, codes in (blobs(40, 40), blobs(40, 40, 1), blobs(1, 1), twins):
        model = cls(rule="own", epochs=10, random_state=0, **parameters).fit(rows, codes)
        assert np.isfinite(model.novelty(rows)).all()
        assert set(model.predict(rows)) <= {-1, *codes}
    assert np.mean(model.predict_closed(rows) == codes) >= 0.5


def tensor(rows: Array) -> torch.Tensor:
    return torch.from_numpy(rows.astype(np.float32))
