"""Total correlation as a torch module: a sum of mutual informations by any estimator."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from offmap.dependence.decomposition import terms
from offmap.dependence.estimator import Bound, Estimator, check_tensor
from offmap.dependence.registry import check_settings, estimator_class


class TotalCorrelation(nn.Module):
    r"""Estimates how much several variables share, $\mathbb E \log \frac{p(x_1, \dots, x_n)}{p(x_1) \cdots p(x_n)}$.

    The total correlation, in nats, is a sum of mutual informations between groups of the variables. The estimators of
    all terms form one stack and cost about as much as one. If they bound each term, the sum bounds the total
    correlation.

    Args:
        widths: Width of each variable; they may differ.
        decomposition: "tree" splits the variables into halves, "line" adds one at a time.
        estimator: Estimator of each term: a name such as "infonce", or a class of ``Estimator``.
        settings: Settings of the estimator, such as ``hidden``.

    Attributes:
        terms: The two groups of variables of each term, as ranges of positions.
        estimator: The stack of estimators.

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
        self.terms = terms(decomposition, len(self.widths))
        left, right = ([self._columns(term[side]) for term in self.terms] for side in (0, 1))
        make = _maker(estimator, settings)
        self.estimator = make([len(own) for own in left], [len(own) for own in right], **settings)
        # The column past the last holds zeros, which pad narrow groups.
        self.register_buffer("_left", _padded(left, sum(self.widths)), persistent=False)
        self.register_buffer("_right", _padded(right, sum(self.widths)), persistent=False)

    @property
    def bound(self) -> Bound | None:
        """How the value relates to the truth: "lower", "upper" or None."""
        return self.estimator.bound

    @property
    def sound_to_maximise(self) -> bool:
        """Whether raising the value raises a lower bound of the total correlation."""
        return self.estimator.sound_to_maximise

    @property
    def sound_to_minimise(self) -> bool:
        """Whether lowering the value lowers an upper bound of the total correlation."""
        return self.estimator.sound_to_minimise

    def values(self, groups: Sequence[Tensor]) -> Tensor:
        """Estimates the mutual information of each term, in the order of ``terms``."""
        return self.estimator.value(*self.pairs(groups))

    def value(self, groups: Sequence[Tensor]) -> Tensor:
        """Estimates the total correlation in nats; give one tensor ``(n, width)`` per variable."""
        return self.values(groups).sum()

    def loss(self, groups: Sequence[Tensor]) -> Tensor:
        """Returns the scalar to minimise over the parameters of the estimators."""
        return self.estimator.loss(*self.pairs(groups))

    def pointwise(self, groups: Sequence[Tensor]) -> Tensor:
        """Returns the contribution of each row, ``(n,)``; the value is its mean."""
        return self.estimator.pointwise(*self.pairs(groups)).sum(0)

    def pairs(self, groups: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Returns both sides of each term, ``(terms, n, widest)``, narrow ones padded with zeros."""
        for place, group in enumerate(groups):
            check_tensor(f"groups[{place}]", group)
        found = tuple(group.shape[-1] for group in groups)
        if found != self.widths or any(group.ndim != 2 or len(group) != len(groups[0]) for group in groups):
            shapes = [tuple(group.shape) for group in groups]
            raise ValueError(f"groups must be tensors (n, width) with the widths {self.widths}; got {shapes}")
        columns = pad(torch.cat(tuple(groups), dim=1), (0, 1)).T
        return columns[self._left].mT, columns[self._right].mT

    def _columns(self, variables: range) -> list[int]:
        starts = [0, *accumulate(self.widths)]
        return [*range(starts[variables.start], starts[variables.stop])]


def _maker(estimator: str | Callable[..., Estimator], settings: dict[str, Any]) -> Callable[..., Estimator]:
    if not isinstance(estimator, str):
        return estimator
    make = estimator_class(estimator)
    check_settings(estimator, settings)
    return make


def _padded(columns: Sequence[list[int]], filler: int) -> Tensor:
    widest = max(map(len, columns))
    return torch.tensor([own + [filler] * (widest - len(own)) for own in columns])
