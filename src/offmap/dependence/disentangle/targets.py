"""What a group of codes must predict: labels or numbers, and the head that predicts them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, column_or_1d
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from offmap.dependence.disentangle.groups import CodeGroup
from offmap.nets import Standardise, mlp

_HEAD_WIDTH = 16


class TargetHead(nn.Module):
    """Predicts the target of a group from its codes.

    Args:
        group: The group.
        outputs: Number of classes, or of numbers per row.
    """

    def __init__(self, group: CodeGroup, outputs: int) -> None:
        super().__init__()
        self.target, self.weight = group.target, group.weight
        network = mlp([group.width, _HEAD_WIDTH, outputs])
        self.network = nn.Sequential(network, nn.Sigmoid()) if group.target == "fraction" else network

    def loss(self, codes: Tensor, target: Tensor) -> Tensor:
        """Weighted cross-entropy of classes, or squared error of numbers, summed over the numbers of a row."""
        predicted = self.network(codes)
        if self.target == "class":
            return self.weight * cross_entropy(predicted, target)
        return self.weight * (predicted - target).square().sum(1).mean()


@dataclass(frozen=True)
class Target:
    """The target of one group, ready for training.

    Attributes:
        values: Codes of the classes ``(n,)``, or numbers ``(n, k)``.
        outputs: Number of outputs of the head.
        classes: The labels, for classes.
    """

    values: Tensor
    outputs: int
    classes: NDArray[Any] | None = None


def check_targets(targets: Mapping[str, ArrayLike], groups: Mapping[str, CodeGroup], rows: int) -> dict[str, Target]:
    """Checks that there is one target for each group that has one, with the same number of rows as X."""
    wanted = [name for name, group in groups.items() if group.target is not None]
    if set(targets) != set(wanted):
        raise ValueError(f"targets must be given for the groups {wanted}, those with a target; got {[*targets]}")
    found = {name: _target(name, groups[name], targets[name]) for name in wanted}
    for name, target in found.items():
        if len(target.values) != rows:
            raise ValueError(f"targets[{name!r}] must have {rows} rows, like X; got {len(target.values)}")
    return found


def _classes(name: str, labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The labels of a target and the place of each row's label among them."""
    missing = np.flatnonzero(pd.isna(labels))
    if len(missing):
        raise ValueError(f"targets[{name!r}] must have a label in each row; row {missing[0]} has none. Drop such rows")
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"targets[{name!r}] must have at least 2 classes; all rows have {classes[0]!r}")
    return classes, codes


def _target(name: str, group: CodeGroup, values: ArrayLike) -> Target:
    if group.target == "class":
        classes, codes = _classes(name, column_or_1d(values))
        return Target(torch.from_numpy(codes), len(classes), classes)
    label = f"targets[{name!r}]"
    numbers = check_array(values, dtype=np.float32, ensure_2d=False, input_name=label)
    tensor = torch.from_numpy(np.array(numbers).reshape(len(numbers), -1))
    if group.target == "number":
        tensor = Standardise(tensor.shape[1]).fit(tensor)(tensor)
    elif tensor.min() < 0 or tensor.max() > 1:
        raise ValueError(f"{label} must lie between 0 and 1 for a group with target 'fraction'")
    return Target(tensor, tensor.shape[1])
