"""A masked autoregressive flow conditioned on the embedding of a task."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Literal

import torch
from torch import Tensor, nn

from offmap.collaborative.apart import SeparableDetector
from offmap.collaborative.conditional import ConditionalDensity
from offmap.collaborative.made import TaskFlow
from offmap.parameters import Count


@dataclass(kw_only=True, eq=False, repr=False)
class FlowDetector(SeparableDetector, ConditionalDensity):
    r"""Flags rows of low density under a masked autoregressive flow of the task.

    $$\log q(x \mid e_t) = \log \pi_{e_t}(f_{e_t}^{-1}(x)) + \log \left| \det \frac{\partial f_{e_t}^{-1}}{\partial x}
    \right|$$

    Rows are standardised first; layers are not normalised over batches. With ``joint=False`` every task has a flow of
    its own, all trained side by side.

    Args:
        condition: "affine" scales and shifts what every unit of every layer says, by
            $f \odot \tanh(e_{scale}) + \tanh(e_{bias})$; "prior" moves the mean of the Gaussian that the flow starts
            from.
        layers: Masked autoregressive layers, in alternating order of the features.
        hidden: Hidden layers of each.

    Reference: Papamakarios, Pavlakou and Murray, Masked Autoregressive Flow for Density Estimation, arXiv:1705.07057;
    Bai et al., Collaborative Anomaly Detection, appendix B.2.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> tasks = np.repeat(np.arange(20), 50)
        >>> X = rng.normal(size=(1000, 2)) + np.stack([np.cos(tasks), np.sin(tasks)], axis=1) * 3
        >>> detector = FlowDetector(condition="prior", epochs=20, random_state=0).fit(X, tasks)
        >>> own, opposite = detector.novelty([[3.0, 0.0], [-3.0, 0.0]], [0, 0])
        >>> bool(own < opposite)
        True
    """

    condition: Literal["affine", "prior"] = "affine"
    layers: Count = 5
    hidden: tuple[Count, ...] = (64, 64)

    def _build_density(self) -> TaskFlow:
        return self._flow(self.embedding_size_)

    def _flow(self, size: int) -> TaskFlow:
        return TaskFlow(prod(self.input_shape_), tuple(self.hidden), self.layers, size, self.condition == "affine")

    def _joint_to_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        # A task bends the layers once for all rows.
        groups = [
            self._familiarity(features.expand(len(part), -1, -1), part.unsqueeze(1))
            for part in embeddings.split(_TASKS)
        ]
        return torch.cat(groups).T

    def _alone(self) -> nn.Module:
        return self._flow(0)

    def _loss_alone(self, networks: Callable[[Tensor], Tensor], own: Tensor, population: Tensor) -> Tensor:
        return -networks(own).mean(dim=1).sum() / own.shape[-1]


# Tasks that all rows are asked about at once.
_TASKS = 16
