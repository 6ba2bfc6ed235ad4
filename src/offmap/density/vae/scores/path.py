"""The likelihood path: three norms on a row's way through the autoencoder."""

from typing import ClassVar

import torch
from torch import Tensor

from offmap.density.reference_distance import Mahalanobis
from offmap.density.vae.network import Posterior
from offmap.density.vae.scores.score import Networks, NoveltyFunction, Requirement, Score, Statistics


def path_norms(residual: Tensor, posterior: Posterior) -> Tensor:
    r"""$\|x - \hat x\|$, $\|\mu\|$ and $\|\sigma\|$ of each row, ``(n, 3)``."""
    spread = (0.5 * posterior.log_var).exp()
    return torch.stack([part.flatten(1).norm(dim=1) for part in (residual, posterior.mean, spread)], dim=1)


class LikelihoodPath(Score):
    r"""How unusual the triple $u = \|x - \hat x\|$, $v = \|\mu\|$, $w = \|\sigma\|$ is among held-out normal rows.

    Each norm is turned into a normal score by its rank among held-out rows; the novelty is the squared Mahalanobis
    distance of the three scores. Values that are too small count as much as values that are too large. Cost: one
    forward pass. Fails: on rows that keep all three norms, such as faint noise and small shifts.

    Reference: Huang et al., Rethinking Test-time Likelihood: The Likelihood Path Principle and Its Application to OOD
    Detection, arXiv:2401.04933.
    """

    name: ClassVar[str] = "lpath"
    requires: ClassVar[frozenset[Requirement]] = frozenset({"held_out"})

    def statistics(self, networks: Networks, X: Tensor) -> Tensor:
        """The three norms."""
        expected, posterior = networks.network.reconstruct(X)
        return path_norms(X - expected, posterior)

    def novelty_function(self, reference: Statistics) -> NoveltyFunction:
        """The squared distance from the mean of ``reference``."""
        return Mahalanobis.fit(reference)
