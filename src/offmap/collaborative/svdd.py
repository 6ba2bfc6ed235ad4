"""Deep support vector data description, for every task."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from offmap.collaborative.apart import ApartDetector
from offmap.collaborative.exposures import Exposures
from offmap.collaborative.networks import RowNetwork, perceptron
from offmap.collaborative.separate import Stack, flat_weights
from offmap.parameters import Count


class SphereNetwork(nn.Module):
    """Maps rows to a space, without biases, which could map all rows to one point.

    Args:
        body: Standardises rows, and finds features of images.
        hidden: Widths of the hidden layers.
        outputs: Width of the space.
    """

    def __init__(self, body: RowNetwork, hidden: tuple[int, ...], outputs: int) -> None:
        super().__init__()
        self.body = body
        widths = (body.outputs, *hidden)
        self.layers = nn.Sequential(perceptron(widths, bias=False), nn.Linear(widths[-1], outputs, bias=False))
        self.centre = nn.Parameter(torch.zeros(outputs))

    def point(self, X: Tensor) -> Tensor:
        """Where rows are mapped to."""
        return self.layers(self.body(X))

    def forward(self, X: Tensor) -> Tensor:
        """Minus the squared distance from the centre, which no gradient moves."""
        return -(self.point(X) - self.centre.detach()).square().sum(dim=-1)


@dataclass(kw_only=True, eq=False, repr=False)
class DeepSVDDDetector(ApartDetector):
    r"""Maps the exposures of a task close to a centre, by a network of its own; what is mapped far away is novel.

    $$\min_{\theta_t} \; \mathbb{E}_{q_t} \| \varphi_{\theta_t}(x) - c_t \|^2$$

    The centre is the mean of the task's exposures under its first weights. Networks of all tasks train side by side.

    Args:
        outputs: Width of the space.

    Reference: Ruff et al., Deep One-Class Classification, ICML 2018.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> tasks = np.repeat(np.arange(20), 50)
        >>> X = rng.normal(size=(1000, 2)) + np.stack([np.cos(tasks), np.sin(tasks)], axis=1) * 3
        >>> detector = DeepSVDDDetector(epochs=30, random_state=0).fit(X, tasks)
        >>> own, opposite = detector.novelty([[3.0, 0.0], [-3.0, 0.0]], [0, 0])
        >>> bool(own < opposite)
        True
    """

    hidden: tuple[Count, ...] = (64,)
    outputs: Count = 32

    def _build_networks(self) -> None:
        self._build_alone()

    def _alone(self) -> SphereNetwork:
        return SphereNetwork(self._body(batch_norm=False), tuple(self.hidden), self.outputs)

    def _fit(self, shown: Exposures, given: Tensor | None) -> Tensor:
        return self._fit_alone(shown)

    def _features(self, X: Tensor) -> Tensor:
        return X

    def _familiarity(self, features: Tensor, embeddings: Tensor) -> Tensor:
        return Stack(self.template_)(embeddings, features.unsqueeze(1)).squeeze(1)

    def _familiarity_at(self, features: Tensor, vectors: Tensor, at: Tensor) -> Tensor:
        return Stack(self.template_).of_pairs(vectors, features, at)

    def _familiarity_to_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        return Stack(self.template_).of_all(embeddings, features)

    def _embed(self, features: Tensor, shown: Exposures) -> Tensor:
        return self._embed_alone(features, shown)

    def _learn_on(self, places: Tensor, features: Tensor, shown: Exposures) -> Tensor:
        self._refuse_stream()
        return super()._learn_on(places, features, shown)

    def _loss_alone(self, networks: Callable[[Tensor], Tensor], own: Tensor, population: Tensor) -> Tensor:
        return -networks(own).mean(dim=1).sum()

    def _first_weights(self, features: Tensor, shown: Exposures) -> Tensor:
        rows = shown.index[torch.argsort(shown.tasks, stable=True)].split(shown.counts.tolist())
        return flat_weights([self._centred(features[index]) for index in rows])

    @torch.no_grad()
    def _centred(self, own: Tensor) -> SphereNetwork:
        """Random weights, with the mean of a task's exposures under them as the centre."""
        network = self._alone().to(self.device)
        network.body.prepare.load_state_dict(self.template_.get_submodule("body.prepare").state_dict())
        network.centre.copy_(network.point(own).mean(dim=0))
        return network
