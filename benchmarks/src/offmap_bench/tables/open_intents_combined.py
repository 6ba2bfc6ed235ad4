"""Whether plain scores of a classifier add to adaptive negative samples in the nine settings of open intents."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from offmap import Guarded
from offmap.metrics import auroc
from offmap.openset import ANSClassifier
from offmap_bench.table import Table
from offmap_bench.tables.open_intents import COMPARED, setting

HELD_OUT = 0.2


@dataclass(frozen=True)
class RankMean:
    """A row of the table: the mean of the ranks of these scores; of one score, that score alone."""

    scores: tuple[str, ...]


def _model(name: Any, seed: int) -> Any:
    if name == "ANS":
        return ANSClassifier(calibration=HELD_OUT, random_state=seed)
    classifier = LogisticRegression(C=10.0, max_iter=300)
    return Guarded(classifier, novelty_score=name, calibration=HELD_OUT, random_state=seed)


@lru_cache(maxsize=16)
def scored(name: str, title: str, seed: int) -> Mapping[str, Any]:
    """Novelty of the test rows, their ranks among the held-out rows, and the seconds that fit and scoring took."""
    X, y, _, X_test, *_ = setting(title, seed)
    start = perf_counter()
    model = _model(name, seed).fit(X, y)
    novelty = model.novelty(X_test)
    return {"novelty": novelty, "rank": 1 - model.p_value(X_test), "seconds": perf_counter() - start}


def measure(method: Any, title: str, seed: int) -> dict[str, float]:
    """How well the mean rank tells unknown test rows from known ones."""
    found = [scored(name, title, seed) for name in method.scores]
    novelty = found[0]["novelty"] if len(found) == 1 else np.mean([each["rank"] for each in found], axis=0)
    unknown = _unknown(title, seed)
    return {
        "auroc": auroc(novelty[~unknown], novelty[unknown]),
        "seconds": float(sum(each["seconds"] for each in found)),
    }


def _unknown(title: str, seed: int) -> NDArray[np.bool_]:
    *_, y_test, known = setting(title, seed)
    return ~np.isin(y_test, known)


COMBINED = Table(
    name="open-intents-combined",
    source="No paper: adaptive negative samples with plain scores",
    caption="AUROC of ANS, of plain scores, and of the mean of their ranks in the nine settings of open intents.",
    rows={
        "ANS": RankMean(("ANS",)),
        "k-nearest": RankMean(("k_nearest",)),
        "energy": RankMean(("energy",)),
        "auto": RankMean(("auto",)),
        "ANS, k-nearest and energy": RankMean(("ANS", "k_nearest", "energy")),
        "ANS and auto": RankMean(("ANS", "auto")),
    },
    columns=COMPARED.columns,
    metrics=("auroc", "seconds"),
    measure=measure,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    needs=COMPARED.needs,
    higher_is_better={"auroc": True},
    formats={"auroc": ".2%", "seconds": ".1f"},
    average=True,
    notes="Frozen all-MiniLM-L6-v2 embeddings. Every score is fitted on four fifths of the training rows of the known "
    "classes; ranks are those among the other fifth, so that a mean of ranks has ties among the most novel rows. "
    "Scores other than ANS are of a logistic regression (C = 10). Nothing was chosen on these settings.",
)
TABLES = (COMBINED,)
