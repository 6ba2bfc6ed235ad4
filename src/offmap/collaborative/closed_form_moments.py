"""Sums over rows that the closed form follows from; those of several shards add up to those of all rows."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from offmap.collaborative.ids import Ids
from offmap.collaborative.observations import Observations


@dataclass(frozen=True)
class ClosedFormMoments:
    """Mean and covariance of raw features over all observations, and their mean for each entity, in double precision.

    Args:
        mean: Mean over all observations.
        covariance: Covariance over all observations.
        entity_means: Mean over those of each entity.
        counts: Number of observations of each entity.
    """

    mean: Tensor
    covariance: Tensor
    entity_means: Tensor
    counts: Tensor

    @classmethod
    def of(cls, raw: Tensor, observed: Observations) -> Self:
        """Measures the observations of a shard, given the raw features of their rows."""
        rows, share = raw.double(), (observed.weights.double() / len(observed)).unsqueeze(1)
        mean = (share * rows).sum(dim=0)
        covariance = (rows - mean).T @ (share * (rows - mean))
        return cls(mean, covariance, observed.entity_means(rows), observed.counts.double())

    @classmethod
    def joined(cls, parts: list[tuple[Ids, "ClosedFormMoments"]]) -> tuple[Ids, "ClosedFormMoments"]:
        """The moments of the observations of all shards, and the ids of their entities, which may share some."""
        ids = np.unique(np.concatenate([own for own, _ in parts]))
        sizes = torch.stack([part.counts.sum() for _, part in parts])
        shares = sizes / sizes.sum()
        mean = sum((share * part.mean for share, (_, part) in zip(shares, parts, strict=True)), torch.zeros(()))
        covariance = torch.zeros_like(parts[0][1].covariance)
        sums, counts = torch.zeros(len(ids), len(mean)).double(), torch.zeros(len(ids)).double()
        for share, (own, part) in zip(shares, parts, strict=True):
            away = part.mean - mean
            covariance += share * (part.covariance + torch.outer(away, away))
            at = torch.from_numpy(np.searchsorted(ids, own))
            sums.index_add_(0, at, part.counts.unsqueeze(1) * part.entity_means)
            counts.index_add_(0, at, part.counts)
        return ids, cls(mean, covariance, sums / counts.unsqueeze(1), counts)
