"""Typicality: how far the likelihood is from the average, on either side."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from offmap.density.vae.scores.bound import bits_per_dimension, negative_elbo
from offmap.density.vae.scores.score import Networks, NoveltyFunction, Requirement, Score, Statistics


class Typicality(Score):
    r"""$\left| \mathrm{bpd}(x) - \overline{\mathrm{bpd}} \right|$: rows that are too likely are novel too.

    The mean is taken over held-out normal rows. This is the typicality test with batches of one row. Cost: one forward
    pass. Fails: on novel rows of average likelihood, which are common where normal rows vary much.

    Reference: Nalisnick et al., Detecting Out-of-Distribution Inputs to Deep Generative Models Using Typicality,
    arXiv:1906.02994.
    """

    name: ClassVar[str] = "typicality"
    requires: ClassVar[frozenset[Requirement]] = frozenset({"held_out"})

    def statistics(self, networks: Networks, X: Tensor) -> Tensor:
        """Bits per dimension."""
        return bits_per_dimension(negative_elbo(networks.network, X), X)[:, None]

    def novelty_function(self, reference: Statistics) -> NoveltyFunction:
        """The distance from the mean of ``reference``."""
        return _Distance(float(reference.mean()))


@dataclass(frozen=True)
class _Distance:
    centre: float

    def __call__(self, statistics: Tensor) -> Tensor:
        return (statistics[:, 0] - self.centre).abs()
