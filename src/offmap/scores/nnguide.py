"""Nearest-neighbour guidance: the energy, trusted where similar known rows had a high one."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from offmap.parameters import Count
from offmap.scores.nearest import require_neighbors
from offmap.scores.neighbors import ROWS_AT_ONCE, most_similar
from offmap.scores.score import Outputs, Score, features_of, logits_of, unit


@dataclass(kw_only=True, eq=False, repr=False)
class NNGuide(Score):
    r"""Scores each row by minus its energy $E = \log \sum_c e^{l_c}$ times the guidance of its nearest known rows.

    $$-E(x) \cdot \frac{1}{k} \sum_{i \in \text{nearest}} \cos(z, z_i) E(x_i)$$

    Args:
        n_neighbors: How many neighbours $k$ guide; they are those of the largest $\cos(z, z_i)$.

    Attributes:
        rows_: The known rows, of unit length, in single precision.
        energy_: Their energies.

    Reference: Park, Jung and Teoh, Nearest Neighbor Guidance for Out-of-Distribution Detection, 2023, equation 4.

    Example:
        >>> import torch
        >>> score = NNGuide(n_neighbors=1).fit(Outputs(torch.eye(2), 5 * torch.eye(2)))
        >>> known, novel = score.novelty(Outputs(torch.tensor([[1.0, 0.0], [-1.0, 0.5]]), 5 * torch.eye(2)))
        >>> bool(novel > known)
        True
    """

    reads: ClassVar[frozenset[str]] = frozenset({"features", "logits"})
    rows_at_once: ClassVar[int] = ROWS_AT_ONCE

    n_neighbors: Count = 10

    def _fit(self, known: Outputs, codes: Tensor | None) -> None:
        require_neighbors(self.n_neighbors, len(known))
        self.rows_ = unit(features_of(known)).float()
        self.energy_ = logits_of(known).logsumexp(dim=1)

    def _novelty(self, outputs: Outputs) -> Tensor:
        found = most_similar(unit(features_of(outputs)).float(), self.rows_, self.n_neighbors)
        guidance = (found.cosine.double() * self.energy_[found.place]).mean(dim=1)
        return -logits_of(outputs).logsumexp(dim=1) * guidance
