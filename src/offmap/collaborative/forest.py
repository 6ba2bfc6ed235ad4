"""An isolation forest for every task, as what one would use today."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from torch import Tensor

from offmap.collaborative.base import CollaborativeDetector, Similar
from offmap.collaborative.exposures import Exposures
from offmap.collaborative.ids import Id
from offmap.parameters import Count


@dataclass(kw_only=True, eq=False, repr=False)
class ForestDetector(CollaborativeDetector):
    r"""Gives each task an isolation forest of its own exposures; rows that few splits part from them are novel.

    Nothing is shared between tasks. Forests are grown by scikit-learn and kept as arrays, so that they are saved
    without pickle; the familiarity is its ``score_samples``, $-2^{-\mathbb{E} h(x) / c}$ for paths of length $h$.

    Args:
        trees: Trees a forest.
        max_samples: Exposures that a tree is grown from, at the most. All forests have room for those of the largest
            task that was fitted, and no more: a task that is added later is cut to as many.

    Reference: Liu, Ting and Zhou, Isolation Forest, ICDM 2008.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> tasks = np.repeat(np.arange(5), 50)
        >>> X = rng.normal(size=(250, 2)) + np.stack([np.cos(tasks), np.sin(tasks)], axis=1) * 3
        >>> detector = ForestDetector(trees=20, random_state=0).fit(X, tasks)
        >>> own, opposite = detector.novelty([[3.0, 0.0], [-3.0, 0.0]], [0, 0])
        >>> bool(own < opposite)
        True
    """

    spatial: ClassVar[bool] = False

    trees: Count = 100
    max_samples: Count = 256

    def similar_tasks(self, task: Id, k: int = 10) -> Similar:
        """Forests have no embedding: a ``ValueError``."""
        raise ValueError("similar_tasks needs embeddings, which a ForestDetector has not")

    def _build_networks(self) -> None:
        """A forest has no network."""

    def _fit(self, shown: Exposures, given: Tensor | None) -> Tensor:
        self.samples_ = min(self.max_samples, int(shown.counts.max()))
        return self._embed(shown.X, shown)

    def _features(self, X: Tensor) -> Tensor:
        return X

    def _embed(self, features: Tensor, shown: Exposures) -> Tensor:
        rows = shown.index[torch.argsort(shown.tasks, stable=True)].split(shown.counts.tolist())
        return torch.stack([self._grown(features[index].cpu().numpy()) for index in rows]).to(self.device)

    def _grown(self, own: NDArray[np.float32]) -> Tensor:
        """One forest as a row: for each node its feature, threshold, children and share of the mean path."""
        seed = int(torch.randint(2**31 - 1, ()))
        samples = min(self.samples_, len(own))
        forest = IsolationForest(n_estimators=self.trees, max_samples=samples, random_state=seed).fit(own)
        nodes = torch.zeros(self.trees, self._nodes(), len(_PARTS))
        if samples == 1:
            # Nothing to part: scikit-learn takes the mean path for a path of that length, and so do we.
            nodes[:, 0, -1] = 1 / self.trees
            return nodes.flatten()
        shortest = float(_mean_path(np.array([float(samples)]))[0]) or 1.0
        for place, tree in enumerate(forest.estimators_):
            described = _described(tree.tree_, self.trees * shortest)
            nodes[place, : len(described)] = torch.from_numpy(described)
        return nodes.flatten()

    def _nodes(self) -> int:
        return 2 * self.samples_ - 1

    def _familiarity(self, features: Tensor, embeddings: Tensor) -> Tensor:
        return self._familiarity_at(features, embeddings, torch.arange(len(features), device=features.device))

    def _familiarity_at(self, features: Tensor, vectors: Tensor, at: Tensor) -> Tensor:
        forests = vectors.view(len(vectors), self.trees, self._nodes(), len(_PARTS))
        trees = torch.arange(self.trees, device=at.device)
        node = torch.zeros(len(features), self.trees, dtype=torch.int64, device=at.device)
        # A tree is no deeper than the logarithm of what it was grown from.
        for _ in range(max(1, self.samples_ - 1).bit_length()):
            feature, threshold, left, right, _ = forests[at.unsqueeze(1), trees, node].unbind(dim=-1)
            below = features.gather(1, feature.long()) <= threshold
            node = torch.where(below, left, right).long()
        return -torch.exp2(-forests[at.unsqueeze(1), trees, node][..., 4].sum(dim=1))

    def _familiarity_to_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        places = torch.arange(len(embeddings), device=features.device)
        columns = [self._familiarity_at(features, embeddings, place.expand(len(features))) for place in places]
        return torch.stack(columns, dim=1)

    def _learn_on(self, places: Tensor, features: Tensor, shown: Exposures) -> Tensor:
        raise ValueError("partial_fit cannot add to a forest, which has to see all exposures of its task again")


_PARTS = ("feature", "threshold", "left", "right", "length")


def _described(tree: object, scale: float) -> NDArray[np.float32]:
    """Nodes of a scikit-learn tree; a leaf leads to itself, and holds its path length over ``scale``."""
    left, right = np.asarray(tree.children_left), np.asarray(tree.children_right)  # type: ignore[attr-defined]
    leaf = left < 0
    itself = np.arange(len(left))
    threshold = np.asarray(tree.threshold)  # type: ignore[attr-defined]
    # Rounded down: rows are float32, and no float32 lies between the threshold and the next one below.
    rounded = threshold.astype(np.float32)
    rounded = np.where(rounded > threshold, np.nextafter(rounded, np.float32(-np.inf)), rounded)
    depth = np.zeros(len(left))
    for node in itself[~leaf]:
        depth[[left[node], right[node]]] = depth[node] + 1
    reached = np.asarray(tree.n_node_samples)  # type: ignore[attr-defined]
    length = np.where(leaf, depth + _mean_path(reached.astype(float)), 0.0) / scale
    feature = np.where(leaf, 0, np.asarray(tree.feature))  # type: ignore[attr-defined]
    parts = (feature, rounded, np.where(leaf, itself, left), np.where(leaf, itself, right), length)
    return np.stack(parts, axis=1).astype(np.float32)


def _mean_path(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean length of a path to a leaf in a random tree of so many samples."""
    many = np.maximum(samples, 3.0)
    path = 2 * (np.log(many - 1) + np.euler_gamma) - 2 * (many - 1) / many
    return np.where(samples <= 1, 0.0, np.where(samples == 2, 1.0, path))
