"""Named groups of codes, and how codes are split, joined and mixed."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from offmap import parameters
from offmap.parameters import Count, Positive

Codes = dict[str, Tensor]


@dataclass(frozen=True)
class CodeGroup:
    """One group of codes of an autoencoder.

    Args:
        width: Number of codes in the group.
        target: What the group must predict: "class" (labels), "number" (real numbers), "fraction" (numbers from 0 to
            1), or None. A group with a target is trained by that target alone; a group without one holds whatever else
            the reconstruction needs.
        weight: Weight of the target's loss.

    Example:
        >>> CodeGroup(8, target="class")
        CodeGroup(width=8, target='class', weight=1.0)
    """

    width: Count
    target: Literal["class", "number", "fraction"] | None = None
    weight: Positive = 1.0

    def __post_init__(self) -> None:
        parameters.check(self)


def split(rows: Tensor, groups: Mapping[str, CodeGroup]) -> Codes:
    """Splits rows into the codes of each group."""
    parts = rows.split([group.width for group in groups.values()], dim=1)
    return dict(zip(groups, parts, strict=True))


def join(codes: Codes) -> Tensor:
    """Concatenates the codes of all groups."""
    return torch.cat(tuple(codes.values()), dim=1)


def detach(codes: Codes, keep: Collection[str] = ()) -> Codes:
    """Stops gradients through all groups but those to ``keep``."""
    return {name: code if name in keep else code.detach() for name, code in codes.items()}


def shuffle(codes: Codes) -> Codes:
    """Takes each group from rows in an order of its own: combinations of codes that no row had."""
    return {name: code[torch.randperm(len(code))] for name, code in codes.items()}
