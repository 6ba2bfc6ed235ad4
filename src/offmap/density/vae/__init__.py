"""The parts of ``VAEDetector``: network, likelihoods, objective, negatives, training and novelty scores."""

from offmap.density.vae.negatives import Negatives

__all__ = ["Negatives"]
