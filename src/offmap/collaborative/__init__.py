"""Collaborative anomaly detection: one model for thousands of entities, each with few rows."""

from offmap.collaborative.closedform import ClosedFormDetector
from offmap.collaborative.contrastive import ContrastiveDetector
from offmap.collaborative.flow import FlowDetector
from offmap.collaborative.forest import ForestDetector
from offmap.collaborative.gaussian import GaussianDetector
from offmap.collaborative.ratio import RatioDetector
from offmap.collaborative.svdd import DeepSVDDDetector

__all__ = [
    "ClosedFormDetector",
    "ContrastiveDetector",
    "DeepSVDDDetector",
    "FlowDetector",
    "ForestDetector",
    "GaussianDetector",
    "RatioDetector",
]
