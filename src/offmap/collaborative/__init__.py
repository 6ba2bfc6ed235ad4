"""Collaborative anomaly detection: one model for thousands of entities, each with few rows."""

from offmap.collaborative.closed_form import ClosedFormDetector
from offmap.collaborative.contrastive import EntityContrastiveDetector
from offmap.collaborative.flow import EntityFlowDetector
from offmap.collaborative.forest import EntityForestDetector
from offmap.collaborative.gaussian import EntityGaussianDetector
from offmap.collaborative.ratio import RatioDetector
from offmap.collaborative.separate_flow import SeparateFlowDetector
from offmap.collaborative.separate_gaussian import SeparateGaussianDetector
from offmap.collaborative.separate_ratio import SeparateRatioDetector
from offmap.collaborative.svdd import EntitySVDDDetector

__all__ = [
    "ClosedFormDetector",
    "EntityContrastiveDetector",
    "EntityFlowDetector",
    "EntityForestDetector",
    "EntityGaussianDetector",
    "EntitySVDDDetector",
    "RatioDetector",
    "SeparateFlowDetector",
    "SeparateGaussianDetector",
    "SeparateRatioDetector",
]
