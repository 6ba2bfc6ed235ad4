"""Detectors that learn from normal rows alone: how likely, or how close to normal rows, is a new one?"""

from offmap.density.ecod import ECODDetector
from offmap.density.gaussian_mixture import GaussianMixtureDetector
from offmap.density.mahalanobis import MahalanobisDetector
from offmap.density.nearest_neighbors import NearestNeighborDetector
from offmap.density.texture import TextureDetector
from offmap.density.vae_detector import VAEDetector

__all__ = [
    "ECODDetector",
    "GaussianMixtureDetector",
    "MahalanobisDetector",
    "NearestNeighborDetector",
    "TextureDetector",
    "VAEDetector",
]
