"""Random projection and ridge regression, as sums over rows that can be added to and subtracted from."""

from copy import deepcopy
from typing import Any, Self, final

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import one_hot

from offmap.nets import Standardise
from offmap.nets.steady import steady_map


@final
class AnalyticNetwork(nn.Module):
    r"""Scores rows by ridge regression of the classes on random features $h = \max(0, Wz + b)$, all classes alike.

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
        return torch.relu(steady_map(self.scale(X), self.projection) + self.shift)

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

    def solve(self, penalty: float, *, leverage: bool = True) -> Self:
        r"""Solves for the weights with all classes alike, however many rows each has.

        With the mean $\mu_m$ of each class and the mean number of rows $n$ per class, the scatter within the classes
        stays as it is and each class counts as $n$ rows at its mean: $G' = G + \sum_m (n - n_m) \mu_m \mu_m^T$,
        $Q' = n (\mu_1, \mu_2, \ldots)$, and the weights are $(G' + \lambda I)^{-1} Q'$. With classes of equal size that
        is plain ridge regression.

        Args:
            penalty: $\lambda$ as a multiple of the mean diagonal entry of $G'$.
            leverage: Whether leverages will be asked for; they take a third of the time.
        """
        means, rows = self._means(), self._rows_per_class()
        gram = self.gram + (means * (rows - self.counts)) @ means.T
        level = penalty * gram.diagonal().mean().clamp_min(1e-12)
        identity = torch.eye(len(gram), dtype=torch.float64, device=gram.device)
        root = torch.linalg.cholesky(gram + level * identity)
        weights = torch.cholesky_solve(rows * means, root)
        if leverage:
            self.whitening = torch.linalg.solve_triangular(root, identity, upper=False).T.float().contiguous()
        # In one memory layout, because products of the same numbers in another one may round differently.
        self.weights = weights.float().contiguous()
        squares = self.counts.sum() - 2 * rows * (weights * means).sum() + (weights * (gram @ weights)).sum()
        self.variance = (squares / self.counts.sum()).clamp_min(1e-3).float()
        return self

    def _means(self) -> Tensor:
        """The mean features of each class, as columns; zero for a class without rows."""
        return self.sums / self.counts.clamp_min(1.0)

    def _rows_per_class(self) -> Tensor:
        """The mean number of rows of the classes that have any."""
        return self.counts.sum() / (self.counts > 0.5).sum()

    def scores(self, X: Tensor) -> Tensor:
        """Returns the score of each class."""
        return steady_map(self.features(X), self.weights)

    def forward(self, X: Tensor) -> tuple[Tensor, Tensor]:
        r"""Returns the score of each class, and the leverage $h^T (G + \lambda I)^{-1} h$ of each row."""
        H = self.features(X)
        return steady_map(H, self.weights), steady_map(H, self.whitening).square().sum(dim=1)

    def left_out(self, X: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        r"""Returns scores and leverage of rows that have trained the network, as if each of them had not.

        Without a row $h$, the mean of its class is $\mu' = (n_m \mu - h) / (n_m - 1)$, and $G'$ differs by a matrix
        $U C U^T$ with $U = (h, \mu)$: its inverse follows from that of $G'$ by Woodbury's identity, and no other
        solution is computed. The penalty and the weight of the classes stay as they are.
        """
        H, rows = self.features(X), self._rows_per_class()
        means, counts = self._means().T.float(), self.counts[y]
        pair = torch.stack([H, means[y]], dim=1)
        white = (pair @ self.whitening).double()
        inner, scores = white @ white.transpose(1, 2), (pair @ self.weights).double()
        others = (counts - 1).clamp_min(1.0)
        # The mean without the row, and the row's offset from the mean, as multiples of the row and the mean.
        mean = torch.stack([-1 / others, counts / others], dim=1) * (counts > 1.5)[:, None]
        offset = torch.tensor([1.0, -1.0], dtype=torch.float64, device=y.device) * (counts > 1.5)[:, None]
        old_mean = torch.tensor([0.0, 1.0], dtype=torch.float64, device=y.device).expand_as(mean)
        change = rows * (_squared(mean) - _squared(old_mean)) - (counts / others)[:, None, None] * _squared(offset)
        identity = torch.eye(2, dtype=torch.float64, device=y.device)
        gain = inner[:, :1] @ torch.linalg.solve(identity + change @ inner, change)
        found = (scores[:, :1] - gain @ scores)[:, 0]
        to_pair = (inner[:, :1] - gain @ inner)[:, 0]
        found[torch.arange(len(y)), y] = rows * (to_pair * mean).sum(dim=1)
        return found.float(), to_pair[:, 0].float()


def _squared(vectors: Tensor) -> Tensor:
    """The outer product of each vector with itself."""
    return vectors[:, :, None] * vectors[:, None, :]
