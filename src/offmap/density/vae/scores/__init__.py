"""Novelty scores of a variational autoencoder, one file per idea; each docstring states cost and known failures."""

from typing import Annotated

from offmap.density.vae.scores.bound import BitsPerDimension, Divergence, EvidenceBound, ImportanceBound
from offmap.density.vae.scores.nearest import Nearest
from offmap.density.vae.scores.path import LikelihoodPath
from offmap.density.vae.scores.ratio import InputComplexity, LikelihoodRatio
from offmap.density.vae.scores.regret import LikelihoodRegret
from offmap.density.vae.scores.score import Networks, NoveltyFunction, Requirement, Score, Statistics
from offmap.density.vae.scores.texture import Texture
from offmap.density.vae.scores.typicality import Typicality
from offmap.density.vae.scores.waic import WAIC
from offmap.parameters import Limit

_CLASSES: tuple[type[Score], ...] = (
    LikelihoodPath,
    BitsPerDimension,
    EvidenceBound,
    Divergence,
    ImportanceBound,
    Typicality,
    Texture,
    Nearest,
    InputComplexity,
    LikelihoodRatio,
    WAIC,
    LikelihoodRegret,
)
# Every score with its default settings, by name.
SCORES: dict[str, Score] = {cls.name: cls() for cls in _CLASSES}
ScoreName = Annotated[str, Limit(f"among {', '.join(map(repr, SCORES))}", SCORES.__contains__)]

__all__ = [
    "SCORES",
    "WAIC",
    "BitsPerDimension",
    "Divergence",
    "EvidenceBound",
    "ImportanceBound",
    "InputComplexity",
    "LikelihoodPath",
    "LikelihoodRatio",
    "LikelihoodRegret",
    "Nearest",
    "Networks",
    "NoveltyFunction",
    "Requirement",
    "Score",
    "ScoreName",
    "Statistics",
    "Texture",
    "Typicality",
]
