"""The three norms on a row's path through the autoencoder."""

from typing import ClassVar

import torch
from torch import Tensor

from offmap.density.scores.held_out import Mahalanobis
from offmap.density.scores.score import Judge, Models, Part, Score, Statistics
from offmap.density.vae import Posterior


def norms(residual: Tensor, posterior: Posterior) -> Tensor:
    r"""$\|x - \hat x\|$, $\|\mu\|$ and $\|\sigma\|$ of each row, ``(n, 3)``."""
    spread = (0.5 * posterior.log_var).exp()
    return torch.stack([part.flatten(1).norm(dim=1) for part in (residual, posterior.mean, spread)], dim=1)


class LPath(Score):
    r"""How odd the triple $u = \|x - \hat x\|$, $v = \|\mu\|$, $w = \|\sigma\|$ is, on either side of what is normal.

    Each is turned into a normal score by its rank among held-out normal rows, the three are decorrelated, and the
    novelty is the squared length of the result: values too small are as odd as values too large. Cost: one pass. Fails:
    on rows that keep all three norms, as faint noise and small shifts do.

    Reference: Huang et al., Rethinking Test-time Likelihood: The Likelihood Path Principle and Its Application to OOD
    Detection, arXiv:2401.04933.
    """

    needs: ClassVar[frozenset[Part]] = frozenset({"held_out"})

    def statistics(self, models: Models, X: Tensor) -> Tensor:
        """The three norms."""
        expected, posterior = models.network.reconstruct(X)
        return norms(X - expected, posterior)

    def judge(self, normal: Statistics) -> Judge:
        """The squared length, as measured on ``normal``."""
        return Mahalanobis.fit(normal)
