"""Scores, one idea a file: what each looks at, what it costs and where it fails is in its docstring."""

from typing import Literal

from offmap.density.scores.bound import BitsPerDimension, Divergence, EvidenceBound, ImportanceBound
from offmap.density.scores.nearest import Nearest
from offmap.density.scores.path import LPath
from offmap.density.scores.ratio import InputComplexity, LikelihoodRatio
from offmap.density.scores.regret import LikelihoodRegret
from offmap.density.scores.score import Judge, Models, Part, Score, Statistics
from offmap.density.scores.typicality import Typicality
from offmap.density.scores.views import Views
from offmap.density.scores.waic import WAIC

ScoreName = Literal[
    "auto",
    "bpd",
    "elbo",
    "kl",
    "importance",
    "typicality",
    "lpath",
    "views",
    "nearest",
    "complexity",
    "likelihood_ratio",
    "waic",
    "regret",
]

SCORES: dict[str, Score] = {
    "bpd": BitsPerDimension(),
    "elbo": EvidenceBound(),
    "kl": Divergence(),
    "importance": ImportanceBound(),
    "typicality": Typicality(),
    "lpath": LPath(),
    "views": Views(),
    "nearest": Nearest(),
    "complexity": InputComplexity(),
    "likelihood_ratio": LikelihoodRatio(),
    "waic": WAIC(),
    "regret": LikelihoodRegret(),
}

__all__ = ["SCORES", "Judge", "Models", "Part", "Score", "ScoreName", "Statistics"]
