"""Entities with few rows borrow from the entities most similar to them."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

# An entity with fewer rows is blended with its neighbours.
FEW = 10


def blend(weights: Tensor, counts: Tensor, known: Tensor, n_neighbors: int) -> Tensor:
    r"""Mixes the weights of entities with few rows with the mean of those of the nearest entities, by angle.

    With $n$ rows the neighbours count $\beta = (10 - n) / 20$: four tenths for two rows, nothing from ten on.

    Args:
        weights: One row per entity.
        counts: Number of rows of each entity.
        known: Weights of entities with enough rows, to find neighbours among.
        n_neighbors: How many to take; none if 0.
    """
    few = counts < FEW
    if not n_neighbors or not bool(few.any()) or len(known) == 0:
        return weights
    mixed = weights.clone()
    directions = normalize(known)
    for part in few.nonzero().squeeze(1).split(1024):
        nearest = (normalize(weights[part]) @ directions.T).topk(min(n_neighbors, len(known))).indices
        share = ((FEW - counts[part]) / (2 * FEW)).unsqueeze(1)
        mixed[part] = torch.lerp(weights[part], known[nearest].mean(dim=1), share.to(weights))
    return mixed
