r"""The closed form: least-squares ratios in fixed features, with one Gram matrix for all tasks.

For a ratio that is linear in centred features, $r_t(x) = 1 + \langle \varphi(x) - \bar\varphi, w_t \rangle$, the
least-squares fit to $q_t / p$ is

$$w_t = (H + \lambda_n I)^{-1} (\mu_t - \bar\varphi), \qquad \mu_t = \operatorname{mean}_t \varphi(x),$$

with the covariance $H$ of the features in the population. A mean of $n$ exposures is off by a variance of order $1/n$,
and so $\lambda_n = \lambda\, \bar h / n$, where $\bar h$ is the mean variance of a feature. In the eigenvectors of $H$
all is diagonal: a new task is one mean and one product.

Reference: Kanamori, Hido and Sugiyama, A Least-squares Approach to Direct Importance Estimation, JMLR 2009.
"""

import torch
from torch import Tensor, nn

from offmap.collaborative.exposures import Exposures

RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
# Rows of the population that own exposures are ranked among, to choose a ridge.
_RANKED_AMONG = 256
_SMALLEST = 1e-12


class Gram(nn.Module):
    """The population's mean and covariance, and the ridge, for features of width ``size``."""

    mean: Tensor
    axes: Tensor
    spread: Tensor
    ridge: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("axes", torch.eye(size))
        self.register_buffer("spread", torch.ones(size))
        self.register_buffer("ridge", torch.ones(()))

    def measure(self, features: Tensor, weights: Tensor) -> None:
        """Takes mean and covariance of rows that count by ``weights``."""
        rows, share = features.double(), (weights / weights.sum()).double().unsqueeze(1)
        mean = (share * rows).sum(dim=0)
        spread, axes = torch.linalg.eigh((rows - mean).T @ (share * (rows - mean)))
        self.mean.copy_(mean)
        self.axes.copy_(axes)
        self.spread.copy_(spread.clamp(min=0))

    def rotate(self, features: Tensor) -> Tensor:
        """Centred features in the eigenvectors of the covariance."""
        return (features - self.mean) @ self.axes

    def damping(self, counts: Tensor) -> Tensor:
        """What the mean of so many exposures is divided by, direction by direction."""
        # Above 0, for rows that are all alike: their means are 0 as well.
        return (self.spread + self.ridge * self.spread.mean() / counts.unsqueeze(1)).clamp(min=_SMALLEST)

    def solve(self, means: Tensor, counts: Tensor) -> Tensor:
        """The weights of tasks from their means of rotated features."""
        return means / self.damping(counts)

    def choose_ridge(self, rotated: Tensor, shown: Exposures, held_out: Exposures) -> dict[float, float]:
        """Takes the ridge under which held-out exposures rank highest among the population; returns the ranks."""
        among = rotated[shown.index[torch.randint(len(shown), (_RANKED_AMONG,), device=rotated.device)]]
        means, counts = shown.task_means(rotated), shown.counts
        ranks = {}
        for ridge in RIDGES:
            self.ridge.fill_(ridge)
            weights = self.solve(means, counts)
            pieces = zip(held_out.index.split(4096), held_out.tasks.split(4096), strict=True)
            ranks[ridge] = sum(_rank(rotated[index], weights[tasks], among) for index, tasks in pieces) / len(held_out)
        self.ridge.fill_(max(ranks, key=lambda ridge: ranks[ridge]))
        return ranks


def _rank(own: Tensor, weights: Tensor, among: Tensor) -> float:
    """Sum over exposures of the share of the population that scores lower."""
    scores = (own * weights).sum(dim=1, keepdim=True)
    return float((weights @ among.T < scores).float().mean(dim=1).sum())


def log_ratio(ratio: Tensor) -> Tensor:
    """The logarithm, continued along its tangent below one half: least squares may give ratios below 0.

    Example:
        >>> log_ratio(torch.tensor([1.0, 0.5, -0.5]))
        tensor([ 0.0000, -0.6931, -2.6931])
    """
    return torch.where(ratio > 0.5, ratio.clamp(min=0.5).log(), 2 * ratio - 1 - torch.tensor(2.0).log())
