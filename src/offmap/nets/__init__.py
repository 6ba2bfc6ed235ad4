"""Networks, one idea per file."""

from offmap.nets.conv import ConvDecoder, ConvEncoder
from offmap.nets.dcgan import DCGANDecoder, DCGANEncoder
from offmap.nets.freezing import frozen
from offmap.nets.perceptron import mlp
from offmap.nets.standardise import Standardise

__all__ = ["ConvDecoder", "ConvEncoder", "DCGANDecoder", "DCGANEncoder", "Standardise", "frozen", "mlp"]
