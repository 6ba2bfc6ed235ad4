"""Post-hoc scores of a plain classifier beside ANS, in the nine settings of open intents."""

from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from offmap.calibration.post_hoc import make_score
from offmap.metrics import auroc
from offmap.scores import Outputs, ScoreName, scored
from offmap_bench.table import Table
from offmap_bench.tables.open_intents import COMPARED, setting


@dataclass(frozen=True, kw_only=True)
class Named:
    """A row of the table: the score of that name, with its default parameters."""

    score: ScoreName | str


@lru_cache(maxsize=1)
def classified(title: str, seed: int) -> tuple[Outputs, Tensor, Outputs, NDArray[np.bool_]]:
    """Outputs and codes of the training rows, outputs of the test rows, and which of these are unknown.

    The classifier is a logistic regression on the frozen embeddings, which are the features.
    """
    X, y, _, X_test, y_test, known = setting(title, seed)
    classifier = LogisticRegression(C=10.0, max_iter=300).fit(X, y)
    train, test = (Outputs(rows, classifier.decision_function(rows)) for rows in (X, X_test))
    return train, torch.from_numpy(np.searchsorted(classifier.classes_, y)), test, ~np.isin(y_test, known)


def measure(method: Any, title: str, seed: int) -> dict[str, float]:
    """Fits to the known classes and measures how well the novelty tells unknown test rows from known ones."""
    novelty, unknown, seconds = (_by_score if isinstance(method, Named) else _by_classifier)(method, title, seed)
    return {"auroc": auroc(novelty[~unknown], novelty[unknown]), "seconds": seconds}


def _by_score(method: Named, title: str, seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_], float]:
    train, codes, test, unknown = classified(title, seed)
    start = perf_counter()
    novelty = scored(make_score(method.score, train).fit(train, codes), test)
    return novelty, unknown, perf_counter() - start


def _by_classifier(method: Any, title: str, seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_], float]:
    X, y, _, X_test, y_test, known = setting(title, seed)
    start = perf_counter()
    novelty = clone(method).set_params(random_state=seed).fit(X, y).novelty(X_test)
    return novelty, ~np.isin(y_test, known), perf_counter() - start


SCORES = Table(
    name="open-intents-scores",
    source="No paper: post-hoc scores of any classifier",
    caption="AUROC of post-hoc scores on a logistic regression, and of ANS, in the nine settings of open intents.",
    rows={
        "max softmax": Named(score="max_softmax"),
        "max logit": Named(score="max_logit"),
        "energy": Named(score="energy"),
        "GEN": Named(score="gen"),
        "k-nearest": Named(score="k_nearest"),
        "Mahalanobis": Named(score="mahalanobis"),
        "Mahalanobis, unit length": Named(score="mahalanobis_unit"),
        "relative Mahalanobis": Named(score="relative_mahalanobis"),
        "ViM": Named(score="vim"),
        "NNGuide": Named(score="nnguide"),
        "fDBD": Named(score="fdbd"),
        "rank mean": Named(score="rank_mean"),
        "auto": Named(score="auto"),
        "ANS": COMPARED.rows["ANS"],
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
    notes="Frozen all-MiniLM-L6-v2 embeddings are the features, a logistic regression (C = 10) gives the logits. Known "
    "classes and splits as in the table open-intents. Each score has its default parameters; `rank mean` is of the "
    "nearest row, Mahalanobis and energy, `auto` of the nearest row, relative Mahalanobis and fDBD. Which three `auto` "
    "takes was chosen on images. ANS is a classifier of its own on the same rows; open-intents has its rivals. Seconds "
    "are for fitting the score, or the classifier, and scoring the test rows; other work shared the machine.",
)
TABLES = (SCORES,)
