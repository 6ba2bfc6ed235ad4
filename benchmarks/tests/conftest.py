"""Shared by all tests of the benchmarks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import settings
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from offmap_bench import Table

MakeTable = Callable[..., Table]

# As in the tests of the library: the same examples in every run, and one thread per test process.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _plain_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes tables of the command line independent of the terminal."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("NO_COLOR", "1")


class Forests:
    """Measures isolation forests on shifted points, records its calls, and raises an error at a chosen one."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int]] = []
        self.stop: dict[int, BaseException] = {}

    def __call__(self, method: Any, column: str, seed: int) -> dict[str, float]:
        if error := self.stop.get(len(self.calls)):
            self.stop = {}
            raise error
        self.calls.append((column, method.n_estimators, seed))
        rng = np.random.default_rng(seed)
        normal, novel = rng.normal(size=(64, 2)), rng.normal(float(column.split()[-1]), size=(32, 2))
        forest = method.set_params(random_state=seed).fit(normal[:32])
        labels = np.repeat([1, 0], 32)
        return {"auroc": float(roc_auc_score(labels, forest.score_samples(np.concatenate([normal[32:], novel]))))}


@pytest.fixture
def forests() -> Forests:
    return Forests()


@pytest.fixture
def make_table(forests: Forests) -> MakeTable:
    def make(**changes: Any) -> Table:
        defaults: dict[str, Any] = {
            "name": "forests",
            "source": "Isolation, Table 1",
            "rows": {"small": IsolationForest(n_estimators=2), "large": IsolationForest(n_estimators=8)},
            "columns": ("shift 1", "shift 3"),
            "metrics": ("auroc",),
            "measure": forests,
            "seeds": {"cpu": range(3)},
            "profiles": {"cpu": {}},
        }
        return Table(**{**defaults, **changes})

    return make
