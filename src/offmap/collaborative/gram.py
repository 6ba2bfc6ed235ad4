r"""The closed form: least-squares ratios in fixed features, with one Gram matrix for all entities.

For a ratio that is linear in centred features, $r_t(x) = 1 + \langle \varphi(x) - \bar\varphi, w_t \rangle$, the
least-squares fit to $q_t / p$ is

$$w_t = (H + \lambda_n I)^{-1} (\mu_t - \bar\varphi), \qquad \mu_t = \operatorname{mean}_t \varphi(x),$$

with the covariance $H$ of the features of all rows. A mean of $n$ rows is off by a variance of order $1/n$,
and so $\lambda_n = \lambda\, \bar h / n$, where $\bar h$ is the mean variance of a feature. In the eigenvectors of $H$
all is diagonal: a new entity takes one mean and one product.

Reference: Kanamori, Hido and Sugiyama, A Least-squares Approach to Direct Importance Estimation, JMLR 2009.
"""

import torch
from torch import Tensor, nn

from offmap.collaborative.observations import Observations

RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
# Number of rows that own rows are ranked among, to choose a ridge.
_RANKED_AMONG = 256
_SMALLEST = 1e-12


class Gram(nn.Module):
    """Mean and covariance of the features of all rows, and the ridge.

    Args:
        size: Width of the features.
    """

    mean: Tensor
    axes: Tensor
    spread: Tensor
    ridge: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        # Not torch.eye: while a file is loaded, sizes are measured on the meta device, where it imports torch._dynamo.
        self.register_buffer("axes", torch.zeros(size, size).fill_diagonal_(1))
        self.register_buffer("spread", torch.ones(size))
        self.register_buffer("ridge", torch.ones(()))

    def fit(self, features: Tensor, weights: Tensor) -> None:
        """Takes mean and covariance of rows, each weighted by ``weights``."""
        rows, share = features.double(), (weights / weights.sum()).double().unsqueeze(1)
        mean = (share * rows).sum(dim=0)
        self.set(mean, (rows - mean).T @ (share * (rows - mean)))

    def set(self, mean: Tensor, covariance: Tensor) -> None:
        """Takes a mean and a covariance that are known already, in double precision."""
        spread, axes = torch.linalg.eigh(covariance)
        self.mean.copy_(mean)
        self.axes.copy_(axes)
        self.spread.copy_(spread.clamp(min=0))

    def rotate(self, features: Tensor) -> Tensor:
        """Centred features in the eigenvectors of the covariance."""
        return (features - self.mean) @ self.axes

    def damping(self, counts: Tensor) -> Tensor:
        """What the mean of so many rows is divided by, direction by direction."""
        # Above 0 even if all rows are alike: then their means are 0 as well.
        return (self.spread + self.ridge * self.spread.mean() / counts.unsqueeze(1)).clamp(min=_SMALLEST)

    def solve(self, means: Tensor, counts: Tensor) -> Tensor:
        """The weights of entities from their means of rotated features."""
        return means / self.damping(counts)

    def choose_ridge(self, rotated: Tensor, observed: Observations, held_out: Observations) -> dict[float, float]:
        """Takes the ridge under which held-out rows rank highest among all rows; returns the mean ranks."""
        among = rotated[observed.sample(_RANKED_AMONG)]
        means, counts = observed.entity_means(rotated), observed.counts
        ranks = {}
        for ridge in RIDGES:
            self.ridge.fill_(ridge)
            weights = self.solve(means, counts)
            pieces = zip(held_out.index.split(4096), held_out.entities.split(4096), strict=True)
            ranks[ridge] = sum(_rank(rotated[index], weights[entities], among) for index, entities in pieces) / len(
                held_out
            )
        self.ridge.fill_(max(ranks, key=lambda ridge: ranks[ridge]))
        return ranks


def _rank(own: Tensor, weights: Tensor, among: Tensor) -> float:
    """Sum over rows of the share of ``among`` that scores lower."""
    scores = (own * weights).sum(dim=1, keepdim=True)
    return float((weights @ among.T < scores).float().mean(dim=1).sum())


def log_ratio(ratio: Tensor) -> Tensor:
    """The logarithm, continued along its tangent below one half, since least squares may give ratios below 0.

    Example:
        >>> log_ratio(torch.tensor([1.0, 0.5, -0.5]))
        tensor([ 0.0000, -0.6931, -2.6931])
    """
    return torch.where(ratio > 0.5, ratio.clamp(min=0.5).log(), 2 * ratio - 1 - torch.tensor(2.0).log())
