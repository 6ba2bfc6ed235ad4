"""Several methods on the same splits of the same data, ranked, with the differences that are no more than noise."""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from offmap.data import Data
from offmap.data.roles import Roles
from offmap.metrics import auroc
from offmap.workflow.evaluation import held_out_parts
from offmap.workflow.fitting import Estimator, fit_model, name_of
from offmap.workflow.scoring import assess

_TESTED = 1 / 3


class Standing(NamedTuple):
    """One line of the leaderboard.

    Args:
        method: Name of the method; the second of the same name is "name (2)".
        auroc: Mean AUROC over the splits.
        recall: Mean share of the novel rows that are flagged.
        false_alarms: Mean share of the normal test rows that are flagged.
        behind: How far the AUROC is behind the best.
        noise: Half the width of the 95 % interval of that difference.
        verdict: "best", "within noise of the best" or "worse".
    """

    method: str
    auroc: float
    recall: float
    false_alarms: float
    behind: float
    noise: float
    verdict: str


def compare(
    estimators: Sequence[Estimator],
    data: Data,
    *,
    hold_out: Sequence[str] = (),
    novel: Data | None = None,
    roles: Roles | None = None,
    splits: int = 5,
) -> list[Standing]:
    r"""Fits each method on several random splits and ranks them by how well they notice novel rows.

    All methods see the same splits, so the difference to the best is paired. Its 95 % interval has the half-width
    $t_{k-1} \sqrt{(1/k + n_2/n_1) s^2}$ for $k$ splits, where $n_2/n_1$ is the ratio of test to training rows: training
    sets overlap, and without this correction differences would look surer than they are.

    Args:
        estimators: The methods.
        data: Normal rows, or rows with labels.
        hold_out: Labels whose rows are novel: no method sees them in training.
        novel: Novel rows instead.
        roles: What the columns of the table were for.
        splits: Number of random splits.

    Reference: Nadeau and Bengio, Inference for the Generalization Error, Machine Learning 52, 2003, equation 10.
    """
    if bool(hold_out) == (novel is not None):
        raise ValueError("comparing needs novel rows: either classes to hold out, or rows that are novel")
    if splits < 2:
        raise ValueError(f"splits must be at least 2, to tell differences from noise; got {splits}")
    methods = _named(estimators)
    found = {name: np.empty((splits, 3)) for name in methods}
    for seed in range(splits):
        parts = held_out_parts(data, hold_out, seed) if novel is None else _parted(data, novel, seed)
        for name, method in methods.items():
            found[name][seed] = _measured(clone(method).set_params(random_state=seed), *parts, roles)
    return _ranked(found)


def _named(estimators: Sequence[Estimator]) -> dict[str, Estimator]:
    """The methods by name; the same method with other parameters is numbered."""
    names = [name_of(method) for method in estimators]
    counts = [names[: place + 1].count(name) for place, name in enumerate(names)]
    numbered = [name if count == 1 else f"{name} ({count})" for name, count in zip(names, counts, strict=True)]
    return dict(zip(numbered, estimators, strict=True))


def _parted(data: Data, novel: Data, seed: int) -> tuple[Data, Data, Data]:
    train, test = train_test_split(np.arange(len(data)), test_size=_TESTED, random_state=seed)
    return data.part(np.sort(train)), data.part(np.sort(test)), novel


def _measured(
    method: Estimator, train: Data, normal: Data, novel: Data, roles: Roles | None
) -> tuple[float, float, float]:
    model = fit_model(method, train, roles)
    known, unknown = assess(model, normal), assess(model, novel)
    return auroc(known.novelty, unknown.novelty), float(unknown.novel.mean()), float(known.novel.mean())


def _ranked(found: dict[str, NDArray[np.float64]]) -> list[Standing]:
    order = sorted(found, key=lambda name: -found[name][:, 0].mean())
    best = found[order[0]][:, 0]
    lines = []
    for name in order:
        area, recall, alarms = found[name].mean(axis=0)
        behind, noise = _difference(best - found[name][:, 0])
        word = "best" if name == order[0] else "within noise of the best" if behind <= noise else "worse"
        lines.append(Standing(name, float(area), float(recall), float(alarms), behind, noise, word))
    return lines


def _difference(differences: NDArray[np.float64]) -> tuple[float, float]:
    count = len(differences)
    spread = sqrt((1 / count + _TESTED / (1 - _TESTED)) * float(differences.var(ddof=1)))
    return float(differences.mean()), float(t.ppf(0.975, count - 1)) * spread
