"""The names under which users choose a score."""

from typing import Literal, get_args

from offmap.scores.fdbd import FDBD
from offmap.scores.logits import GEN, Energy, MaxLogit, MaxSoftmax
from offmap.scores.mahalanobis import Mahalanobis, RelativeMahalanobis
from offmap.scores.nearest import KNearest
from offmap.scores.nnguide import NNGuide
from offmap.scores.rank_mean import RankMean
from offmap.scores.score import Score
from offmap.scores.vim import ViM

ScoreName = Literal[
    "max_softmax",
    "max_logit",
    "energy",
    "gen",
    "k_nearest",
    "mahalanobis",
    "mahalanobis_unit",
    "relative_mahalanobis",
    "vim",
    "nnguide",
    "fdbd",
    "rank_mean",
]
SCORE_NAMES: tuple[ScoreName, ...] = get_args(ScoreName)


def named_score(name: ScoreName) -> Score:
    """The score of that name, with its default parameters.

    Example:
        >>> named_score("k_nearest"), named_score("mahalanobis_unit")
        (KNearest(), Mahalanobis(normalise=True))
    """
    made: dict[str, Score] = {
        "max_softmax": MaxSoftmax(),
        "max_logit": MaxLogit(),
        "energy": Energy(),
        "gen": GEN(),
        "k_nearest": KNearest(),
        "mahalanobis": Mahalanobis(),
        "mahalanobis_unit": Mahalanobis(normalise=True),
        "relative_mahalanobis": RelativeMahalanobis(),
        "vim": ViM(),
        "nnguide": NNGuide(),
        "fdbd": FDBD(),
        "rank_mean": RankMean(),
    }
    return made[name]
