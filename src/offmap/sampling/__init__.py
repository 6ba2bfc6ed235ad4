"""Drawing from a density known up to a constant, in one forward pass."""

from offmap.sampling.amortised import AmortisedSVGD
from offmap.sampling.fgan import FGAN
from offmap.sampling.ras import RAS
from offmap.sampling.svgd import SVGD

__all__ = ["FGAN", "RAS", "SVGD", "AmortisedSVGD"]
