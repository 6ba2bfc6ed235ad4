"""What ANS needs to learn new classes: labels that are sums over rows, rows of old classes, and room for new heads."""

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from offmap.openset.analytic_network import AnalyticNetwork
from offmap.openset.head_batches import NO_HEAD

# The ridge penalty of ``AnalyticClassifier``, as a multiple of the mean diagonal entry.
_PENALTY = 0.1
# Rows of each class that later heads are trained against; more would only make the model file larger.
_KEPT = 100


class AnalyticLabels(nn.Module):
    """Labels rows among the known classes by ridge regression on random features, which learns by adding to sums.

    Args:
        inputs: Number of features.
        width: Number of random features.
        classes: Number of known classes.
    """

    def __init__(self, inputs: int, width: int, classes: int) -> None:
        super().__init__()
        self.ridge = AnalyticNetwork(inputs, width, classes)

    def forward(self, rows: Tensor) -> Tensor:
        """Returns the logit of each class."""
        return self.ridge.scores(rows) / self.ridge.variance

    @torch.no_grad()
    def fit(self, rows: Tensor, y: Tensor) -> None:
        """Adds rows to the sums and solves for the weights."""
        self.ridge.add(rows, y).solve(_PENALTY, leverage=False)


def fit_logistic(layer: nn.Linear, rows: Tensor, y: Tensor, penalty: float) -> None:
    """Fills a linear layer with the solution of multinomial logistic regression."""
    logistic = LogisticRegression(C=1 / (penalty * len(rows)), tol=1e-3, max_iter=1000)
    logistic.fit(rows.cpu().numpy(), y.cpu().numpy())
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(_one_row_per_class(logistic.coef_)))
        layer.bias.copy_(torch.from_numpy(_one_row_per_class(logistic.intercept_)))


def first_of_each_class(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Places of the first rows of each class, a hundred at most.

    Example:
        >>> first_of_each_class(np.repeat([1, 0, 1], [3, 150, 1])).shape
        (104,)
    """
    return np.sort(np.concatenate([np.flatnonzero(codes == code)[:_KEPT] for code in np.unique(codes)]))


def heads_of(codes: NDArray[np.intp], trained: NDArray[np.intp]) -> NDArray[np.intp]:
    """The place of each row's class among the classes whose head is not ``trained`` yet; -1 for the others.

    Example:
        >>> heads_of(np.array([0, 1, 2, 3, 1]), trained=np.array([0, 2]))
        array([-1,  0, -1,  1,  0])
    """
    new = np.setdiff1d(codes, trained)
    return np.where(np.isin(codes, new), np.searchsorted(new, codes), NO_HEAD)


def placed(old: dict[str, Tensor], new: dict[str, Tensor], at: NDArray[np.intp]) -> dict[str, Tensor]:
    """The weights of all heads: old ones at the places ``at``, unchanged, and new ones at the places between them.

    Args:
        old: Weights of the heads that exist, one per class along the first axis; the first ``len(at)`` are used.
        new: Weights of the new heads.
        at: The place of each old head among all.

    Example:
        >>> placed({"w": torch.tensor([1.0, 3.0])}, {"w": torch.tensor([2.0])}, np.array([0, 2]))
        {'w': tensor([1., 2., 3.])}
    """
    count = len(at) + len(next(iter(new.values())))
    between = np.setdiff1d(np.arange(count), at)
    together = {name: torch.empty(count, *tensor.shape[1:], dtype=tensor.dtype) for name, tensor in new.items()}
    for name, tensor in together.items():
        tensor[torch.from_numpy(at)] = old[name][: len(at)].cpu()
        tensor[torch.from_numpy(between)] = new[name].cpu()
    return together


def _one_row_per_class(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turns the single log-odds row of two-class logistic regression into one row per class."""
    return np.concatenate([-values / 2, values / 2]) if len(values) == 1 else values
