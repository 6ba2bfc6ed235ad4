"""The density ratio of an entity's rows to those of all entities, by a network per entity."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from offmap.collaborative.augmentation import Augment, augmentation
from offmap.collaborative.networks import Network, need_images, perceptron, row_network, tensor_shape
from offmap.collaborative.separate_detector import Recipe, SeparateDetector
from offmap.nets.steady import Linear
from offmap.parameters import Count, Share
from offmap.ratio import ratio_loss


@dataclass(frozen=True)
class RatioRecipe(Recipe):
    """A classifier of own rows against rows of all entities.

    Args:
        input_shape: Shape of a row.
        kind: Kind of network.
        hidden: Widths of the hidden layers.
        conv_channels: Channels of the first convolution.
        dropout: Dropout after each hidden layer.
        augment: How images are changed at random in training.
    """

    input_shape: tuple[int, ...]
    kind: Network
    hidden: tuple[int, ...]
    conv_channels: int
    dropout: float | tuple[float, ...]
    augment: Augment

    def network(self) -> nn.Module:
        """A new network."""
        body = row_network(self.input_shape, self.kind, self.conv_channels, batch_norm=False)
        widths = (body.outputs, *self.hidden)
        return nn.Sequential(body, perceptron(widths, self.dropout), Linear(widths[-1], 1), nn.Flatten(0))

    def loss(self, networks: Callable[[Tensor], Tensor], own: Tensor, population: Tensor) -> Tensor:
        """The sum over entities of the logistic loss, so that the gradient of each is that of its own loss."""
        rows = torch.cat([own, population], dim=1)
        # The networks of all entities run as one, which leaves no room for draws inside them.
        rows = augmentation(self.augment)(rows.flatten(0, 1)).unflatten(0, rows.shape[:2])
        scores = networks(rows)
        return ratio_loss(scores[:, : own.shape[1]], scores[:, own.shape[1] :]) * len(own)


@final
@dataclass(kw_only=True, eq=False, repr=False)
class SeparateRatioDetector(SeparateDetector):
    r"""Scores how much more likely a row is among the rows of its entity than among all, by a network per entity.

    Each network estimates $\log q_t(x) / p(x)$ from its entity's own rows and a sample of the rows of all entities.
    ``RatioDetector`` shares one network among the entities and needs far fewer rows of each.

    Args:
        network: "conv" for images, "mlp" for any rows; "auto" takes convolutions for images of 16 pixels and more.
        hidden: Widths of the hidden layers.
        conv_channels: Channels of the first of four convolutions; the next have 2, 4 and 8 times as many.
        dropout: Share of the units dropped in training: one number, or one for each hidden layer.
        augment: How training images are changed at random: "crop" cuts out a part of the padded image, "crop_flip"
            also mirrors half of them.

    Reference: Bai et al., Collaborative Anomaly Detection, section 5.2.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> entities = np.repeat(np.arange(20), 50)
        >>> X = rng.normal(size=(1000, 2)) + np.stack([np.cos(entities), np.sin(entities)], axis=1) * 3
        >>> detector = SeparateRatioDetector(epochs=30, lr=1e-2, hidden=(16,), random_state=0).fit(X, entities)
        >>> own, opposite = detector.novelty([[3.0, 0.0], [-3.0, 0.0]], [0, 0])
        >>> bool(own < opposite)
        True
    """

    spatial: ClassVar[bool] = True

    network: Network = "auto"
    hidden: tuple[Count, ...] = (128, 64)
    conv_channels: Count = 16
    dropout: Share | tuple[Share, ...] = 0.0
    augment: Augment = "none"

    def _recipe(self) -> RatioRecipe:
        if self.augment != "none":
            need_images(self.input_shape_, f'augment="{self.augment}"')
        dropout = tuple(self.dropout) if isinstance(self.dropout, tuple | list) else self.dropout
        hidden = tuple(self.hidden)
        return RatioRecipe(self.input_shape_, self.network, hidden, self.conv_channels, dropout, self.augment)

    def _shared_features(self) -> nn.Module:
        return nn.Identity()

    def _feature_shape(self) -> tuple[int, ...]:
        return tensor_shape(self.input_shape_)

    def _row_width(self) -> int:
        return 64 * self.conv_channels
