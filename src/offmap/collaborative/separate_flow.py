"""A masked autoregressive flow per entity."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import ClassVar, final

from torch import Tensor, nn

from offmap.collaborative.made import ConditionedFlow
from offmap.collaborative.networks import flat_rows
from offmap.collaborative.separate_detector import Recipe, SeparateDetector
from offmap.parameters import Count


@dataclass(frozen=True)
class FlowRecipe(Recipe):
    """A flow without condition.

    Args:
        width: Number of features.
        hidden: Widths of the hidden layers of each autoregressive layer.
        n_layers: Number of autoregressive layers.
    """

    width: int
    hidden: tuple[int, ...]
    n_layers: int

    def network(self) -> nn.Module:
        """A new flow."""
        return ConditionedFlow(self.width, self.hidden, self.n_layers, size=0, bends=False)

    def loss(self, networks: Callable[[Tensor], Tensor], own: Tensor, population: Tensor) -> Tensor:
        """Minus the mean log density of each entity's own rows, per feature, summed over entities."""
        return -networks(own).mean(dim=1).sum() / own.shape[-1]


@final
@dataclass(kw_only=True, eq=False, repr=False)
class SeparateFlowDetector(SeparateDetector):
    """Scores rows by their density under a masked autoregressive flow that is trained on the entity's rows alone.

    Rows are standardised first. ``EntityFlowDetector`` shares one flow among the entities.

    Args:
        n_layers: Number of masked autoregressive layers, in alternating order of the features.
        hidden: Widths of the hidden layers of each.

    Reference: Papamakarios, Pavlakou and Murray, Masked Autoregressive Flow for Density Estimation, arXiv:1705.07057.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> entities = np.repeat(np.arange(20), 50)
        >>> X = rng.normal(size=(1000, 2)) + np.stack([np.cos(entities), np.sin(entities)], axis=1) * 3
        >>> detector = SeparateFlowDetector(epochs=30, n_layers=2, hidden=(16,), lr=1e-2, random_state=0)
        >>> own, opposite = detector.fit(X, entities).novelty([[3.0, 0.0], [-3.0, 0.0]], [0, 0])
        >>> bool(own < opposite)
        True
    """

    spatial: ClassVar[bool] = True

    n_layers: Count = 5
    hidden: tuple[Count, ...] = (64, 64)

    def _recipe(self) -> FlowRecipe:
        return FlowRecipe(prod(self.input_shape_), tuple(self.hidden), self.n_layers)

    def _shared_features(self) -> nn.Module:
        return flat_rows(self.input_shape_)

    def _feature_shape(self) -> tuple[int, ...]:
        return (prod(self.input_shape_),)
