"""Autoencoders whose codes come in named groups that share as little as possible."""

from offmap.dependence.disentangle.autoencoder import GroupedAutoencoder
from offmap.dependence.disentangle.groups import CodeGroup
from offmap.dependence.disentangle.swaps import swap_grid

__all__ = ["CodeGroup", "GroupedAutoencoder", "swap_grid"]
