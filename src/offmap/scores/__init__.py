"""Post-hoc novelty scores: from the features and logits that any trained model gives."""

from offmap.scores.chunks import scored
from offmap.scores.fdbd import FDBD
from offmap.scores.logits import GEN, Energy, MaxLogit, MaxSoftmax
from offmap.scores.mahalanobis import Mahalanobis, RelativeMahalanobis
from offmap.scores.named import SCORE_NAMES, ScoreName, named_score
from offmap.scores.nearest import KNearest
from offmap.scores.nnguide import NNGuide
from offmap.scores.rank_mean import RankMean
from offmap.scores.score import Outputs, Score
from offmap.scores.vim import ViM

__all__ = [
    "FDBD",
    "GEN",
    "SCORE_NAMES",
    "Energy",
    "KNearest",
    "Mahalanobis",
    "MaxLogit",
    "MaxSoftmax",
    "NNGuide",
    "Outputs",
    "RankMean",
    "RelativeMahalanobis",
    "Score",
    "ScoreName",
    "ViM",
    "named_score",
    "scored",
]
