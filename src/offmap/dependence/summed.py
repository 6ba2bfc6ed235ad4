"""Total correlation as a sum of mutual informations, over any estimator of these."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from offmap.dependence import decomposition as parts
from offmap.dependence.estimator import Bound, Estimator
from offmap.dependence.registry import estimator_class


class TotalCorrelation(nn.Module):
    r"""How much several variables share, $\mathbb E \log \frac{p(x_1, \dots, x_n)}{p(x_1) \cdots p(x_n)}$, in nats.

    It is a sum of mutual informations between groups of the variables; the estimators of all terms are one stack and
    cost about as much as one. What their bound is to each term, the sum is to the total correlation.

    Args:
        widths: Width of each variable; they may differ.
        decomposition: "tree" splits the variables in halves, "line" takes in one after another.
        estimator: Of each term: a name, such as "infonce", or a class of ``Estimator``.
        settings: Given to the estimator, such as ``hidden``.

    Reference: Bai et al., Estimating Total Correlation with Mutual Information Estimators, arXiv:2011.04794.

    Example:
        >>> correlation = TotalCorrelation([3, 2, 4], estimator="js", hidden=(32,))
        >>> groups = [torch.randn(64, width) for width in (3, 2, 4)]
        >>> correlation.loss(groups).backward()
        >>> correlation.value(groups).shape, correlation.bound
        (torch.Size([]), None)
    """

    _left: Tensor
    _right: Tensor

    def __init__(
        self,
        widths: Sequence[int],
        *,
        decomposition: str = "tree",
        estimator: str | Callable[..., Estimator] = "js",
        **settings: Any,
    ) -> None:
        super().__init__()
        self.widths, self.decomposition = tuple(widths), decomposition
        self.terms = parts.terms(decomposition, len(self.widths))
        left, right = ([self._columns(term[side]) for term in self.terms] for side in (0, 1))
        make = estimator_class(estimator) if isinstance(estimator, str) else estimator
        self.estimator = make([len(own) for own in left], [len(own) for own in right], **settings)
        # The column past the last is one of zeros, which narrow groups are padded with.
        self.register_buffer("_left", _padded(left, sum(self.widths)), persistent=False)
        self.register_buffer("_right", _padded(right, sum(self.widths)), persistent=False)

    @property
    def bound(self) -> Bound | None:
        """What the value is to the truth: "lower", "upper" or None."""
        return self.estimator.bound

    @property
    def sound_to_maximise(self) -> bool:
        """Whether raising the value raises a lower bound of what the variables share."""
        return self.estimator.sound_to_maximise

    @property
    def sound_to_minimise(self) -> bool:
        """Whether lowering the value lowers an upper bound of what the variables share."""
        return self.estimator.sound_to_minimise

    def values(self, groups: Sequence[Tensor]) -> Tensor:
        """The mutual information of each term of the sum, in the order of ``terms``."""
        return self.estimator.value(*self.pairs(groups))

    def value(self, groups: Sequence[Tensor]) -> Tensor:
        """The estimate in nats of variables ``(n, width)``, one tensor each."""
        return self.values(groups).sum()

    def loss(self, groups: Sequence[Tensor]) -> Tensor:
        """The number to minimise over the parameters of the estimators."""
        return self.estimator.loss(*self.pairs(groups))

    def pointwise(self, groups: Sequence[Tensor]) -> Tensor:
        """What each row ``(n,)`` adds to the value, which is the mean."""
        return self.estimator.pointwise(*self.pairs(groups)).sum(0)

    def _columns(self, variables: range) -> list[int]:
        starts = [0, *accumulate(self.widths)]
        return [*range(starts[variables.start], starts[variables.stop])]

    def pairs(self, groups: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Both sides of each term, ``(terms, n, widest)``, narrow ones padded with zeros."""
        found = tuple(group.shape[-1] for group in groups)
        if found != self.widths or any(group.ndim != 2 or len(group) != len(groups[0]) for group in groups):
            shapes = [tuple(group.shape) for group in groups]
            raise ValueError(f"groups must be (n, width) with the widths {self.widths}; got {shapes}")
        columns = pad(torch.cat(tuple(groups), dim=1), (0, 1)).T
        return columns[self._left].mT, columns[self._right].mT


def _padded(columns: Sequence[list[int]], filler: int) -> Tensor:
    widest = max(map(len, columns))
    return torch.tensor([own + [filler] * (widest - len(own)) for own in columns])
