"""Detectors with a network of rows: the parameters they share."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from offmap.collaborative.base import CollaborativeDetector
from offmap.collaborative.networks import RowNetwork, row_network
from offmap.parameters import Count, NonNegative, Positive, Share


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkDetector(CollaborativeDetector):
    """What the methods share that train networks on rows or images.

    Args:
        features: "conv" for images, "mlp" for any rows; "auto" takes convolutions for images of 16 pixels and more.
        hidden: Widths of the hidden layers.
        conv_width: Channels of the first of four convolutions; the next have 2, 4 and 8 times as many.
        dropout: Share of the units dropped while training; one number, or one for each hidden layer. It is that of
            ratios and of contrastive features; a density and Deep SVDD have none.
        epochs: Passes over the exposures at the most.
        batch_size: Exposures a step.
        lr: Step size.
        weight_decay: Weight decay of the networks.
    """

    spatial: ClassVar[bool] = True

    features: Literal["auto", "mlp", "conv"] = "auto"
    hidden: tuple[Count, ...] = (128, 64)
    conv_width: Count = 16
    dropout: Share | tuple[Share, ...] = 0.0
    epochs: Count = 50
    batch_size: Count = 256
    lr: Positive = 1e-3
    weight_decay: NonNegative = 1e-4

    def _body(self, batch_norm: bool = True) -> RowNetwork:
        return row_network(self.input_shape_, self.features, self.conv_width, batch_norm)

    def _row_width(self) -> int:
        return 64 * self.conv_width
