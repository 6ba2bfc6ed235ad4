"""A masked autoregressive flow conditioned on the embedding of an entity."""

from dataclasses import dataclass
from math import prod
from typing import Literal, final

import torch
from torch import Tensor

from offmap.collaborative.density import build_density, fit_density
from offmap.collaborative.embedding_detector import EmbeddingDetector
from offmap.collaborative.made import ConditionedFlow
from offmap.collaborative.observations import Observations
from offmap.collaborative.parts import Learned, PairHead
from offmap.parameters import Count

# Entities that all rows are scored against at once.
_ENTITIES = 16


class FlowHead(PairHead):
    """Scores rows by their log density under a flow.

    Args:
        flow: The flow.
    """

    def __init__(self, flow: ConditionedFlow) -> None:
        super().__init__()
        self.flow = flow

    def forward(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """The log density of each row for the entity beside it."""
        return self.flow(features, embeddings)

    def score_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """The log density of every row for every entity; an entity conditions the layers once for all rows."""
        groups = [self(features.expand(len(part), -1, -1), part.unsqueeze(1)) for part in embeddings.split(_ENTITIES)]
        return torch.cat(groups).T


@final
@dataclass(kw_only=True, eq=False, repr=False)
class EntityFlowDetector(EmbeddingDetector):
    r"""Scores rows by their density under a masked autoregressive flow that is conditioned on the entity.

    $$\log q(x \mid e_t) = \log \pi_{e_t}(f_{e_t}^{-1}(x)) + \log \left| \det \frac{\partial f_{e_t}^{-1}}{\partial x}
    \right|$$

    Rows are standardised first; layers are not normalised over batches. ``SeparateFlowDetector`` trains a flow per
    entity instead.

    Args:
        condition: "own" scales and shifts the output $f$ of every unit of every layer to
            $f \odot \tanh(e_{scale}) + \tanh(e_{bias})$ by two vectors of the entity's own (the paper shares
            them within a layer): they are its embedding, and ``embedding_size`` does not count. In "affine" both are a
            linear map of the embedding, which may start from anything. "prior" moves the mean of the Gaussian that the
            flow starts from.
        n_layers: Number of masked autoregressive layers, in alternating order of the features.
        hidden: Widths of the hidden layers of each.

    Attributes:
        centre_: Mean of the embeddings of the fitted entities.

    Reference: Papamakarios, Pavlakou and Murray, Masked Autoregressive Flow for Density Estimation, arXiv:1705.07057;
    Bai et al., Collaborative Anomaly Detection, appendix B.2.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> entities = np.repeat(np.arange(20), 50)
        >>> X = rng.normal(size=(1000, 2)) + np.stack([np.cos(entities), np.sin(entities)], axis=1) * 3
        >>> detector = EntityFlowDetector(condition="prior", epochs=20, random_state=0).fit(X, entities)
        >>> own, opposite = detector.novelty([[3.0, 0.0], [-3.0, 0.0]], [0, 0])
        >>> bool(own < opposite)
        True
    """

    condition: Literal["own", "affine", "prior"] = "own"
    n_layers: Count = 5
    hidden: tuple[Count, ...] = (64, 64)

    def _build_parts(self) -> None:
        build_density(self, self._new_head, self.condition == "own")

    def _fit(self, observed: Observations, given: Tensor | None) -> Learned:
        if self.condition != "own":
            return fit_density(self, self._new_head, observed, given)
        if self.embedding != "random" or given is not None:
            asked = f'embedding="{self.embedding}"' if given is None else "embeddings"
            raise ValueError(f'{asked} needs condition="affine" or "prior"; with "own" the vectors start at random')
        return fit_density(self, self._new_head, observed, None, _own_vectors)

    def _new_head(self) -> FlowHead:
        width, own = prod(self.input_shape_), self.condition == "own"
        size, bends = 0 if own else self.embedding_size_, self.condition != "prior"
        return FlowHead(ConditionedFlow(width, tuple(self.hidden), self.n_layers, size, bends, own))


def _own_vectors(head: PairHead, entities: int) -> Tensor:
    assert isinstance(head, FlowHead)
    return head.flow.first_vectors(entities)
