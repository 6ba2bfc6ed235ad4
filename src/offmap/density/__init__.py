"""How likely is this input? Density models and the scores read from them."""

from offmap.density.detector import VAEDetector

__all__ = ["VAEDetector"]
