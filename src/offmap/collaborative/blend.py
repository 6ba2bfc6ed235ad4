"""Tasks of few exposures lean on the tasks nearest to them."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

# Below so many exposures a task is blended with its neighbours.
FEW = 10


def blend(weights: Tensor, counts: Tensor, known: Tensor, neighbours: int) -> Tensor:
    r"""Mixes the weights of tasks of few exposures with the mean of those of their nearest tasks, by angle.

    With $n$ exposures the neighbours count $\beta = (10 - n) / 20$: four tenths for two exposures, nothing from ten on.

    Args:
        weights: One row a task.
        counts: Exposures of each.
        known: Weights of tasks of enough exposures, to find neighbours among.
        neighbours: How many to take; none if 0.
    """
    few = counts < FEW
    if not neighbours or not bool(few.any()) or len(known) == 0:
        return weights
    mixed = weights.clone()
    directions = normalize(known)
    for part in few.nonzero().squeeze(1).split(1024):
        nearest = (normalize(weights[part]) @ directions.T).topk(min(neighbours, len(known))).indices
        share = ((FEW - counts[part]) / (2 * FEW)).unsqueeze(1)
        mixed[part] = torch.lerp(weights[part], known[nearest].mean(dim=1), share.to(weights))
    return mixed
