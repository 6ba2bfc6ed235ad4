"""Deep support vector data description, by a network per entity."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from offmap.collaborative.networks import Network, RowNetwork, perceptron, row_network, tensor_shape
from offmap.collaborative.separate_detector import Recipe, SeparateDetector
from offmap.nets.steady import Linear
from offmap.parameters import Count


class SphereNetwork(nn.Module):
    """Maps rows to a space, without biases, which could map all rows to one point.

    Args:
        body: Standardises rows, and computes features of images.
        hidden: Widths of the hidden layers.
        outputs: Width of the space.
    """

    def __init__(self, body: RowNetwork, hidden: tuple[int, ...], outputs: int) -> None:
        super().__init__()
        self.body = body
        widths = (body.outputs, *hidden)
        self.layers = nn.Sequential(perceptron(widths, bias=False), Linear(widths[-1], outputs, bias=False))
        self.centre = nn.Parameter(torch.zeros(outputs))

    def point(self, X: Tensor) -> Tensor:
        """Where rows are mapped to."""
        return self.layers(self.body(X))

    def forward(self, X: Tensor) -> Tensor:
        """Minus the squared distance from the centre, which no gradient moves."""
        return -(self.point(X) - self.centre.detach()).square().sum(dim=-1)


@dataclass(frozen=True)
class SphereRecipe(Recipe):
    """A network that maps own rows close to a centre.

    Args:
        input_shape: Shape of a row.
        kind: Kind of network.
        hidden: Widths of the hidden layers.
        conv_channels: Channels of the first convolution.
        output_size: Width of the space.
    """

    input_shape: tuple[int, ...]
    kind: Network
    hidden: tuple[int, ...]
    conv_channels: int
    output_size: int

    def network(self) -> SphereNetwork:
        """A new network."""
        body = row_network(self.input_shape, self.kind, self.conv_channels, batch_norm=False)
        return SphereNetwork(body, self.hidden, self.output_size)

    def loss(self, networks: Callable[[Tensor], Tensor], own: Tensor, population: Tensor) -> Tensor:
        """The mean squared distance of own rows from the centre, summed over entities."""
        return -networks(own).mean(dim=1).sum()

    @torch.no_grad()
    def first(self, template: nn.Module, own: Tensor) -> SphereNetwork:
        """Random weights, with the mean of an entity's rows under them as the centre."""
        network = self.network().to(own.device)
        network.body.prepare.load_state_dict(template.get_submodule("body.prepare").state_dict())
        network.centre.copy_(network.point(own).mean(dim=0))
        return network


@final
@dataclass(kw_only=True, eq=False, repr=False)
class EntitySVDDDetector(SeparateDetector):
    r"""Maps the rows of an entity close to a centre by a network of its own; rows that are mapped far away are novel.

    $$\min_{\theta_t} \; \mathbb{E}_{q_t} \| \varphi_{\theta_t}(x) - c_t \|^2$$

    The centre is the mean of the entity's rows under its first weights.

    Args:
        network: "conv" for images, "mlp" for any rows; "auto" takes convolutions for images of 16 pixels and more.
        hidden: Widths of the hidden layers.
        conv_channels: Channels of the first of four convolutions; the next have 2, 4 and 8 times as many.
        output_size: Width of the space that rows are mapped to.

    Reference: Ruff et al., Deep One-Class Classification, ICML 2018.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> entities = np.repeat(np.arange(20), 50)
        >>> X = rng.normal(size=(1000, 2)) + np.stack([np.cos(entities), np.sin(entities)], axis=1) * 3
        >>> detector = EntitySVDDDetector(epochs=30, random_state=0).fit(X, entities)
        >>> own, opposite = detector.novelty([[3.0, 0.0], [-3.0, 0.0]], [0, 0])
        >>> bool(own < opposite)
        True
    """

    spatial: ClassVar[bool] = True

    network: Network = "auto"
    hidden: tuple[Count, ...] = (64,)
    conv_channels: Count = 16
    output_size: Count = 32

    def _recipe(self) -> SphereRecipe:
        return SphereRecipe(self.input_shape_, self.network, tuple(self.hidden), self.conv_channels, self.output_size)

    def _shared_features(self) -> nn.Module:
        return nn.Identity()

    def _feature_shape(self) -> tuple[int, ...]:
        return tensor_shape(self.input_shape_)

    def _row_width(self) -> int:
        return 64 * self.conv_channels
