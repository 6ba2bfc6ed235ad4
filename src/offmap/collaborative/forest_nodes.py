"""Isolation forests as integers: two per node, and the start of each tree."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_LARGEST = 2**31


@dataclass(frozen=True)
class Layout:
    """How a forest is stored as one row of ``int32``: the start of each tree, one value and one code per node.

    The value of a leaf is its path length, that of another node its threshold, both as the bits of a ``float32``. The
    code joins the feature of a node and its right child, counted from the start of the tree; 0 marks a leaf.

    Args:
        trees: Trees per forest.
        nodes: Room for the nodes of all trees together.
        samples: Rows that a tree is grown from, at most.
        features: Number of features.
    """

    trees: int
    nodes: int
    samples: int
    features: int

    def __post_init__(self) -> None:
        if self.features * self.step >= _LARGEST:
            raise ValueError(
                f"max_samples={self.samples} is too large for {self.features} features; it must be below "
                f"{_LARGEST // (2 * self.features)}"
            )

    @property
    def step(self) -> int:
        """Nodes of the largest tree, by which codes count features."""
        return 2 * self.samples - 1

    @property
    def depth(self) -> int:
        """Splits on the longest path: a tree is no deeper than the logarithm of the rows it is grown from."""
        return max(1, self.samples - 1).bit_length()

    def row(self, values: list[Tensor], codes: list[Tensor]) -> Tensor:
        """One forest as a row; trees for which there is no room are left out, and count for the others."""
        ends = np.cumsum([len(tree) for tree in values])
        kept = int((ends <= self.nodes).sum())
        found = torch.zeros(self.trees + 2 * self.nodes, dtype=torch.int32)
        found[: self.trees] = -1
        found[:kept] = torch.from_numpy(np.concatenate([[0], ends])[:kept])
        joined = torch.cat(values[:kept]), torch.cat(codes[:kept])
        scaled = torch.where(joined[1] == 0, joined[0] * (self.trees / kept), joined[0])
        length = len(scaled)
        found[self.trees : self.trees + length] = scaled.view(torch.int32)
        found[self.trees + self.nodes : self.trees + self.nodes + length] = joined[1]
        return found


def packed(trees: list[Any], samples: int, step: int) -> tuple[list[Tensor], list[Tensor]]:
    """Values and codes of the nodes of each tree of a scikit-learn forest.

    Args:
        trees: Its trees.
        samples: Rows that each was grown from.
        step: Nodes of the largest tree.
    """
    # Of a single row nothing can be isolated: scikit-learn takes the mean path for a path of that length.
    shortest = float(_mean_path(np.array([float(samples)]))[0]) or 1.0
    values = [_values(tree, len(trees) * shortest) for tree in trees]
    if samples == 1:
        values = [torch.full_like(value, 1 / len(trees)) for value in values]
    return values, [_codes(tree, step) for tree in trees]


def _values(tree: Any, scale: float) -> Tensor:
    """Thresholds of the inner nodes; path lengths over ``scale`` of the leaves."""
    left, right = np.asarray(tree.children_left), np.asarray(tree.children_right)
    leaf, threshold = left < 0, np.asarray(tree.threshold)
    # Rounded down: rows are float32, and no float32 lies between the threshold and the next one below.
    rounded = threshold.astype(np.float32)
    rounded = np.where(rounded > threshold, np.nextafter(rounded, np.float32(-np.inf)), rounded)
    depth = np.zeros(len(left))
    for node in np.flatnonzero(~leaf):
        depth[[left[node], right[node]]] = depth[node] + 1
    length = (depth + _mean_path(np.asarray(tree.n_node_samples).astype(float))) / scale
    return torch.from_numpy(np.where(leaf, length, rounded).astype(np.float32))


def _codes(tree: Any, step: int) -> Tensor:
    """Feature and right child of the inner nodes; 0 for leaves. The left child is always the next node."""
    inner = np.asarray(tree.children_left) >= 0
    codes = np.where(inner, np.asarray(tree.feature) * step + np.asarray(tree.children_right), 0)
    return torch.from_numpy(codes.astype(np.int32))


def _mean_path(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean length of a path to a leaf in a random tree of so many samples."""
    many = np.maximum(samples, 3.0)
    path = 2 * (np.log(many - 1) + np.euler_gamma) - 2 * (many - 1) / many
    return np.where(samples <= 1, 0.0, np.where(samples == 2, 1.0, path))
