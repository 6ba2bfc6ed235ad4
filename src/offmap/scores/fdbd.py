"""The distance of features to the decision boundaries of the classifier."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from offmap.scores.head import Head
from offmap.scores.score import Outputs, Score, features_of, logits_of


@dataclass(kw_only=True, eq=False, repr=False)
class FDBD(Score):
    r"""Scores each row by how close it is to the decision boundaries, relative to its distance from the mean.

    $$-\frac{1}{C - 1} \sum_{c \ne m} \frac{|l_c - l_m|}{\|w_c - w_m\| \, \|z - \mu\|}, \qquad m = \arg\max_c l_c,$$

    with the rows $w_c$ of the linear layer that turns features into logits.

    Attributes:
        mean_: The mean $\mu$ of the known rows.
        gaps_: $\|w_c - w_m\|$ for each pair of classes.

    Reference: Liu and Qin, Fast Decision Boundary based Out-of-Distribution Detector, 2024, equation 8.

    Example:
        >>> import torch
        >>> Z = torch.tensor([[4.0, 0.0], [-4.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
        >>> score = FDBD().fit(Outputs(Z, torch.hstack([Z[:, :1], -Z[:, :1]])))
        >>> score.novelty(Outputs(torch.tensor([[3.0, 0.0]]), torch.tensor([[3.0, -3.0]]))).round(decimals=3)
        tensor([-1.], dtype=torch.float64)
    """

    reads: ClassVar[frozenset[str]] = frozenset({"features", "logits"})

    def _fit(self, known: Outputs, codes: Tensor | None) -> None:
        weight = Head.of(known).weight.T
        self.mean_ = features_of(known).mean(dim=0)
        self.gaps_ = (weight[:, None] - weight[None]).norm(dim=2).clamp(min=1e-12)

    def _novelty(self, outputs: Outputs) -> Tensor:
        best, place = logits_of(outputs).max(dim=1)
        # The likeliest class itself adds 0 to the sum.
        to_boundaries = (best[:, None] - logits_of(outputs)) / self.gaps_[place]
        distance = (features_of(outputs) - self.mean_).norm(dim=1).clamp(min=1e-12)
        return -to_boundaries.sum(dim=1) / (len(self.gaps_) - 1) / distance
