"""Random projection and ridge regression, as sums over rows that can be added to and subtracted from."""

from copy import deepcopy
from typing import Any, Self, final

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import one_hot

from offmap.nets import Standardise


@final
class AnalyticNetwork(nn.Module):
    r"""Scores rows by ridge regression of the classes on random features $h = \max(0, Wz + b)$.

    Two sums hold all that was learnt: $G = \sum h h^T$ and one column $\sum h$ per class. They are kept in double
    precision, so that many additions and subtractions leave the solution as one sum over all rows would.

    Args:
        inputs: Number of input features.
        width: Number of random features.
        classes: Number of classes.
    """

    gram: Tensor
    sums: Tensor
    counts: Tensor
    weights: Tensor
    whitening: Tensor
    variance: Tensor
    projection: Tensor
    shift: Tensor

    def __init__(self, inputs: int, width: int, classes: int) -> None:
        super().__init__()
        self.scale = Standardise(inputs)
        self.register_buffer("projection", torch.randn(inputs, width) / inputs**0.5)
        self.register_buffer("shift", torch.randn(width))
        self.register_buffer("gram", torch.zeros(width, width, dtype=torch.float64))
        self.register_buffer("sums", torch.zeros(width, classes, dtype=torch.float64))
        self.register_buffer("counts", torch.zeros(classes, dtype=torch.float64))
        self.register_buffer("weights", torch.zeros(width, classes))
        self.register_buffer("whitening", torch.zeros(width, width))
        self.register_buffer("variance", torch.ones(()))

    def features(self, X: Tensor) -> Tensor:
        """Returns the random features of rows."""
        return torch.relu(self.scale(X) @ self.projection + self.shift)

    def add(self, X: Tensor, y: Tensor, sign: float = 1.0) -> Self:
        """Adds rows to the sums; with ``sign=-1`` it takes them out again."""
        classes = self.sums.shape[1]
        for rows, codes in zip(X.split(1024), y.split(1024), strict=True):
            H = self.features(rows).double()
            Y = one_hot(codes, classes).double()
            self.gram += sign * (H.T @ H)
            self.sums += sign * (H.T @ Y)
            self.counts += sign * Y.sum(dim=0)
        return self

    def emptied(self) -> Self:
        """A network with the same features that has seen no row."""
        network = deepcopy(self)
        for total in (network.gram, network.sums, network.counts):
            total.zero_()
        return network

    def shares_features(self, other: "AnalyticNetwork") -> bool:
        """Whether both networks make the same features of a row."""
        pairs = ((self.projection, other.projection), (self.shift, other.shift))
        scales = ((self.scale.mean, other.scale.mean), (self.scale.scale, other.scale.scale))
        return all(torch.equal(one, two) for one, two in (*pairs, *scales))

    def add_sums(self, other: "AnalyticNetwork", places: NDArray[Any]) -> Self:
        """Adds the sums of another network, whose classes have the places ``places`` here."""
        at = torch.as_tensor(places, device=self.sums.device)
        self.gram += other.gram
        self.sums.index_add_(1, at, other.sums)
        self.counts.index_add_(0, at, other.counts)
        return self

    def place_classes(self, classes: int, old: NDArray[Any]) -> Self:
        """Makes room for ``classes`` classes; the present ones move to the places ``old``."""
        places = torch.as_tensor(old, device=self.sums.device)
        self.sums = self.sums.new_zeros(len(self.sums), classes).index_copy_(1, places, self.sums)
        self.counts = self.counts.new_zeros(classes).index_copy_(0, places, self.counts)
        return self

    def drop_class(self, place: int) -> Self:
        """Removes the column of one class, whose rows must have been taken out before."""
        kept = [other for other in range(self.sums.shape[1]) if other != place]
        self.sums, self.counts = self.sums[:, kept], self.counts[kept]
        return self

    def solve(self, penalty: float) -> Self:
        r"""Solves for the weights $(G + \lambda I)^{-1} Q$.

        Args:
            penalty: $\lambda$ as a multiple of the mean diagonal entry of $G$.
        """
        level = penalty * self.gram.diagonal().mean().clamp_min(1e-12)
        identity = torch.eye(len(self.gram), dtype=torch.float64, device=self.gram.device)
        root = torch.linalg.cholesky(self.gram + level * identity)
        weights = torch.cholesky_solve(self.sums, root)
        self.whitening = torch.linalg.solve_triangular(root, identity, upper=False).T.float().contiguous()
        # In one memory layout, because products of the same numbers in another one may round differently.
        self.weights = weights.float().contiguous()
        squares = self.counts.sum() - 2 * (weights * self.sums).sum() + (weights * (self.gram @ weights)).sum()
        self.variance = (squares / self.counts.sum()).clamp_min(1e-3).float()
        return self

    def forward(self, X: Tensor) -> tuple[Tensor, Tensor]:
        r"""Returns the score of each class, and the leverage $h^T (G + \lambda I)^{-1} h$ of each row."""
        H = self.features(X)
        return H @ self.weights, (H @ self.whitening).square().sum(dim=1)

    def left_out(self, X: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        r"""Returns scores and leverage of rows that have trained the network, as if each of them had not.

        With leverage $l$ and corner $e$ of the row's class, the solution without it scores it $(s - l e) / (1 - l)$,
        with leverage $l / (1 - l)$; no other solution is computed.
        """
        scores, leverage = self(X)
        rest = (1 - leverage).clamp_min(1e-6)
        corners = one_hot(y, scores.shape[1]).to(scores.dtype)
        return (scores - leverage[:, None] * corners) / rest[:, None], leverage / rest
