"""Mutual information and total correlation: estimates with intervals, and differentiable losses."""

from offmap.dependence.covariance import gaussian, gaussian_copula
from offmap.dependence.critics import CosineCritic, Critic, JointCritic, SeparableCritic
from offmap.dependence.donsker_varadhan import MINE, SMILE
from offmap.dependence.estimate import Estimate
from offmap.dependence.estimator import Estimator
from offmap.dependence.fitting import Training
from offmap.dependence.infonce import InfoNCE, SaturationWarning
from offmap.dependence.information import mutual_information, total_correlation
from offmap.dependence.js import JS
from offmap.dependence.kernel import kde
from offmap.dependence.nearest_neighbors import ksg, ksg_improved, mixed_ksg
from offmap.dependence.nwj import NWJ
from offmap.dependence.ties import TiesWarning
from offmap.dependence.total_correlation_module import TotalCorrelation
from offmap.dependence.variational import BA, CLUB, CLUBMean

__all__ = [
    "BA",
    "CLUB",
    "JS",
    "MINE",
    "NWJ",
    "SMILE",
    "CLUBMean",
    "CosineCritic",
    "Critic",
    "Estimate",
    "Estimator",
    "InfoNCE",
    "JointCritic",
    "SaturationWarning",
    "SeparableCritic",
    "TiesWarning",
    "TotalCorrelation",
    "Training",
    "gaussian",
    "gaussian_copula",
    "kde",
    "ksg",
    "ksg_improved",
    "mixed_ksg",
    "mutual_information",
    "total_correlation",
]
