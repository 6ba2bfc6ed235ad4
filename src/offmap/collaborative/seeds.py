"""Chooses the seed entities that embeddings are learnt from: at random, spread out, or by leverage."""

from typing import Literal

import torch
from torch import Tensor

Choice = Literal["random", "k_centre", "leverage"]


def choose_seeds(means: Tensor, count: int, choice: Choice) -> Tensor:
    """The codes of ``count`` entities, ascending.

    Args:
        means: One vector per entity: the mean of its rows.
        count: How many to choose; all if there are fewer.
        choice: "random"; "k_centre" takes one entity after another, the farthest from those taken; "leverage" draws
            entities by their statistical leverage, the weight that a regression on the means would give them.
    """
    count = min(count, len(means))
    if choice == "random":
        chosen = torch.randperm(len(means), device=means.device)[:count]
    elif choice == "k_centre":
        chosen = _k_centre(means, count)
    else:
        chosen = torch.multinomial(_leverage(means), count)
    return chosen.sort().values


def _k_centre(means: Tensor, count: int) -> Tensor:
    """Farthest-point selection, from the entity farthest from the mean of all."""
    chosen = [(means - means.mean(dim=0)).norm(dim=1).argmax()]
    nearest = (means - means[chosen[0]]).norm(dim=1)
    for _ in range(count - 1):
        # An entity is taken once, however alike all are.
        nearest[chosen[-1]] = -1.0
        chosen.append(nearest.argmax())
        nearest = torch.minimum(nearest, (means - means[chosen[-1]]).norm(dim=1))
    return torch.stack(chosen)


def _leverage(means: Tensor) -> Tensor:
    r"""The diagonal of $M (M^\top M)^+ M^\top$ for centred means $M$, cut to the directions that hold their spread."""
    centred = means - means.mean(dim=0)
    left, strength, _ = torch.linalg.svd(centred, full_matrices=False)
    held = strength.square().cumsum(0) / strength.square().sum().clamp(min=1e-30)
    kept = min(int((held < 0.99).sum()) + 1, left.shape[1])
    return left[:, :kept].square().sum(dim=1) + 1e-9
