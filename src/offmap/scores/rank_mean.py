"""The mean of the ranks of several scores."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from sklearn.base import clone
from torch import Tensor

from offmap.parameters import Count
from offmap.scores.logits import Energy
from offmap.scores.mahalanobis import Mahalanobis
from offmap.scores.nearest import KNearest
from offmap.scores.score import Outputs, Score


def _three() -> tuple[Score, ...]:
    return KNearest(), Mahalanobis(), Energy()


@dataclass(kw_only=True, eq=False, repr=False)
class RankMean(Score):
    r"""Scores each row by the mean of its ranks among known rows under several scores.

    $$\frac{1}{S} \sum_s \frac{\#\{i : s(x_i) < s(x)\}}{n + 1}$$

    A known row is ranked by scores that were fitted without it (on the other folds), since a row is no distance from
    itself.

    Args:
        scores: The scores; by default the nearest row, Mahalanobis and energy.
        folds: In how many parts the known rows are ranked.

    Attributes:
        scores_: The scores, fitted on all known rows.
        ranks_: For each score, the values of the known rows in ascending order.

    Example:
        >>> Z = torch.randn(50, 2, generator=torch.manual_seed(0))
        >>> score = RankMean(scores=(KNearest(), Energy())).fit(Outputs(Z, Z))
        >>> score.novelty(Outputs(Z[:3], Z[:3])).shape
        torch.Size([3])
    """

    reads: ClassVar[frozenset[str]] = frozenset({"features", "logits"})

    scores: tuple[Score, ...] = field(default_factory=_three)
    folds: Count = 5

    def _require(self, outputs: Outputs) -> None:
        for score in self.scores:
            score._require(outputs)

    def _fit(self, known: Outputs, codes: Tensor | None) -> None:
        self.scores_ = tuple(clone(score).fit(known, codes) for score in self.scores)
        self.ranks_ = [self._left_out(score, known, codes).sort().values for score in self.scores]

    def _left_out(self, score: Score, known: Outputs, codes: Tensor | None) -> Tensor:
        """The score of each known row, fitted on the other folds."""
        if not score.needs_rows:
            return score.novelty(known)
        folds = torch.arange(len(known)) % max(2, min(self.folds, len(known)))
        values = torch.empty(len(known), dtype=torch.float64)
        for fold in range(int(folds.max()) + 1):
            out = folds == fold
            others = None if codes is None else torch.unique(codes[~out], return_inverse=True)[1]
            values[out] = clone(score).fit(known.take(~out), others).novelty(known.take(out))
        return values

    def _novelty(self, outputs: Outputs) -> Tensor:
        ranks = [
            torch.searchsorted(values, score.novelty(outputs).contiguous()).double() / (len(values) + 1)
            for score, values in zip(self.scores_, self.ranks_, strict=True)
        ]
        return torch.stack(ranks).mean(dim=0)
