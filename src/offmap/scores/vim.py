"""Virtual-logit matching: what features have outside the subspace of known rows, as one more logit."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from offmap.nets.steady import steady_map
from offmap.parameters import Count
from offmap.scores.head import Head
from offmap.scores.score import Outputs, Score, features_of, logits_of


@dataclass(kw_only=True, eq=False, repr=False)
class ViM(Score):
    r"""Scores each row by its residual outside the principal subspace, weighed against its logits.

    $$a \|R (z - o)\| - \log \sum_c e^{l_c}$$

    with $a$ the mean of $\max_c l_c$ divided by the mean of $\|R (z - o)\|$ over the known rows. The origin $o$ is the
    point of zero logits, from the linear layer that fits them best.

    Args:
        components: Dimensions of the principal subspace; None for half of the features.

    Attributes:
        origin_: The origin $o$.
        residual_: Columns span what lies outside the principal subspace.
        weight_: The factor $a$.

    Reference: Wang et al., ViM: Out-of-Distribution with Virtual-logit Matching, 2022, equations 3 to 6.

    Example:
        >>> import torch
        >>> X = torch.randn(60, 4, generator=torch.manual_seed(0)) * torch.tensor([3.0, 3.0, 0.1, 0.1])
        >>> score = ViM(components=2).fit(Outputs(X, X[:, :2]))
        >>> inside, outside = score.novelty(Outputs(torch.tensor([[1.0, 0, 0, 0], [1.0, 0, 0, 9]]), torch.eye(2)))
        >>> bool(outside > inside)
        True
    """

    reads: ClassVar[frozenset[str]] = frozenset({"features", "logits"})

    components: Count | None = None

    def _fit(self, known: Outputs, codes: Tensor | None) -> None:
        rows, head = features_of(known), Head.of(known)
        self.origin_ = -head.bias @ torch.linalg.pinv(head.weight, rtol=1e-6)
        centred = rows - self.origin_
        kept = max(1, rows.shape[1] // 2) if self.components is None else min(self.components, rows.shape[1])
        # Eigenvalues ascend: the residual space has the smallest ones.
        vectors = torch.linalg.eigh(centred.T @ centred / len(centred)).eigenvectors
        self.residual_ = vectors[:, : rows.shape[1] - kept]
        mean_residual = self._residual(rows).mean()
        # Without anything outside the subspace, only the logits count.
        scale = logits_of(known).amax(dim=1).mean() / mean_residual.clamp(min=1e-12)
        self.weight_ = float(scale) if mean_residual > 1e-9 else 0.0

    def _novelty(self, outputs: Outputs) -> Tensor:
        residual = self._residual(features_of(outputs))
        return self.weight_ * residual - logits_of(outputs).logsumexp(dim=1)

    def _residual(self, rows: Tensor) -> Tensor:
        return steady_map(rows - self.origin_, self.residual_).norm(dim=1)
