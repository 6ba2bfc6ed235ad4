r"""The level and spread of each task's own novelty, on which one threshold serves all tasks.

A broad task finds even its own exposures only a little more familiar than the population does; a narrow one finds them
far more so. Before scores of different tasks are compared, each is measured by its task's own mean and variance. Both
are drawn towards those of all tasks, as if the task had $\kappa$ exposures more that are like the others'; variances
by their logarithms, which differ less than they do, and with one exposure less, since a single one has none.
"""

import torch
from torch import Tensor

from offmap.collaborative.exposures import Exposures

# κ: below so many exposures, a task's level is more that of all tasks than its own.
PRIOR_EXPOSURES = 10.0
_LARGEST, _SMALLEST = 1e6, 1e-6


def own_levels(novelty: Tensor, shown: Exposures) -> Tensor:
    """Mean and variance of the novelty of each task's own exposures."""
    values = novelty.nan_to_num(_LARGEST).clamp(-_LARGEST, _LARGEST).double()
    counts = shown.counts.double()
    mean = values.new_zeros(len(counts)).index_add_(0, shown.tasks, values) / counts
    squares = (values - mean[shown.tasks]).square()
    variance = values.new_zeros(len(counts)).index_add_(0, shown.tasks, squares) / counts
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
    """Mean of the tasks' levels, and geometric mean of their variances, weighted by what their exposures tell of each.

    Example:
        >>> pooled(torch.tensor([[2.0, 4.0], [5.0, 0.0]]), torch.tensor([2.0, 1.0]))
        tensor([3., 4.])
    """
    spreads = (counts - 1) if bool((counts > 1).any()) else counts
    variance = (spreads / spreads.sum() @ levels[:, 1].clamp(min=_SMALLEST).log()).exp()
    return torch.stack([counts / counts.sum() @ levels[:, 0], variance])


def levelled(novelty: Tensor, levels: Tensor, counts: Tensor, common: Tensor) -> Tensor:
    """Novelty in standard deviations above the level of its task; a row of each argument a score."""
    share, of_spread = ((told / (told + PRIOR_EXPOSURES)).double() for told in (counts, (counts - 1).clamp(min=0)))
    level = torch.lerp(common[0].double(), levels[:, 0].double(), share)
    usual, own = (variance.double().clamp(min=_SMALLEST).log() for variance in (common[1], levels[:, 1]))
    return (novelty - level) / torch.lerp(usual, own, of_spread).exp().sqrt()
