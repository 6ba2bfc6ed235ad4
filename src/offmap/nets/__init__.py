"""Networks, one idea a file."""

from offmap.nets.conv import ConvDecoder, ConvEncoder
from offmap.nets.mlp import mlp
from offmap.nets.standardise import Standardise

__all__ = ["ConvDecoder", "ConvEncoder", "Standardise", "mlp"]
