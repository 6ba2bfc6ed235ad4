"""The linear layer that turns features into logits, found by least squares, so that any model's will do."""

from typing import NamedTuple, Self

import torch
from torch import Tensor

from offmap.scores.score import Outputs, features_of, logits_of


class Head(NamedTuple):
    """Logits are ``features @ weight + bias``: exactly where the last layer is linear, else as well as they can be.

    Example:
        >>> Z = torch.tensor([[0.0], [1.0], [2.0]])
        >>> Head.of(Outputs(Z, torch.hstack([3 * Z, 1 - Z]))).weight.round(decimals=3)
        tensor([[ 3., -1.]], dtype=torch.float64)
    """

    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, known: Outputs) -> Self:
        """Solves for the layer from the outputs of known rows."""
        rows, logits = features_of(known), logits_of(known)
        mean, level = rows.mean(dim=0), logits.mean(dim=0)
        centred = rows - mean
        # By the normal equations: as many unknowns as features, however many rows there are.
        inverse = torch.linalg.pinv(centred.T @ centred, hermitian=True, rtol=_SMALLEST_EIGENVALUE)
        weight = inverse @ (centred.T @ (logits - level))
        return cls(weight, level - mean @ weight)


_SMALLEST_EIGENVALUE = 1e-11
