r"""The level and spread of each entity's own novelty, which put the scores of all entities on one scale.

An entity with varied rows finds even its own rows only a little more familiar than others do; one with rows that are
all alike finds them far more so. Before scores of different entities are compared, each is standardised by the mean and
variance of the scores of its entity's own rows. Both are drawn towards those of all entities, as if the entity had
$\kappa$ more rows that are like the others': variances by their logarithms, which differ less than they do, and with
one row less, since a single row has no variance.
"""

import torch
from torch import Tensor

from offmap.collaborative.observations import Observations

# κ: with fewer rows, an entity's level is more that of all entities than its own.
PRIOR_ROWS = 10.0
_LARGEST, _SMALLEST = 1e6, 1e-6


def own_levels(novelty: Tensor, observed: Observations) -> Tensor:
    """Mean and variance of the novelty of each entity's own rows."""
    values = novelty.nan_to_num(_LARGEST).clamp(-_LARGEST, _LARGEST).double()
    counts = observed.counts.double()
    mean = values.new_zeros(len(counts)).index_add_(0, observed.entities, values) / counts
    squares = (values - mean[observed.entities]).square()
    variance = values.new_zeros(len(counts)).index_add_(0, observed.entities, squares) / counts
    return torch.stack([mean, variance], dim=1).float()


def merged(old: Tensor, old_counts: Tensor, new: Tensor, new_counts: Tensor) -> Tensor:
    """Mean and variance of two samples together, from those of each and their sizes.

    Example:
        >>> merged(torch.tensor([[0.0, 0.0]]), torch.ones(1), torch.tensor([[2.0, 0.0]]), torch.ones(1))
        tensor([[1., 1.]])
    """
    share = new_counts / (old_counts + new_counts)
    step = new[:, 0] - old[:, 0]
    mean = old[:, 0] + share * step
    variance = (1 - share) * old[:, 1] + share * new[:, 1] + share * (1 - share) * step.square()
    return torch.stack([mean, variance], dim=1)


def pooled(levels: Tensor, counts: Tensor) -> Tensor:
    """Mean of the entities' levels and geometric mean of their variances, weighted by the number of their rows.

    Example:
        >>> pooled(torch.tensor([[2.0, 4.0], [5.0, 0.0]]), torch.tensor([2.0, 1.0]))
        tensor([3., 4.])
    """
    spreads = (counts - 1) if bool((counts > 1).any()) else counts
    variance = (spreads / spreads.sum() @ levels[:, 1].clamp(min=_SMALLEST).log()).exp()
    return torch.stack([counts / counts.sum() @ levels[:, 0], variance])


def standardised(novelty: Tensor, levels: Tensor, counts: Tensor, common: Tensor) -> Tensor:
    """Novelty in standard deviations above the level of its entity.

    Args:
        novelty: The scores.
        levels: Mean and variance of the entity of each score.
        counts: Number of rows of the entity of each score.
        common: Mean and variance of all entities.
    """
    share, of_spread = ((told / (told + PRIOR_ROWS)).double() for told in (counts, (counts - 1).clamp(min=0)))
    level = torch.lerp(common[0].double(), levels[:, 0].double(), share)
    all_spread, own = (variance.double().clamp(min=_SMALLEST).log() for variance in (common[1], levels[:, 1]))
    return (novelty - level) / torch.lerp(all_spread, own, of_spread).exp().sqrt()
