"""Samplers for densities that are known up to a constant, and generators that learn from samples."""

from offmap.sampling.amortised_svgd import AmortisedSVGD
from offmap.sampling.binary_vae import BinaryVAE
from offmap.sampling.fgan import FGAN
from offmap.sampling.ras import RAS
from offmap.sampling.svgd import SVGD

__all__ = ["FGAN", "RAS", "SVGD", "AmortisedSVGD", "BinaryVAE"]
