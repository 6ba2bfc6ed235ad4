"""Two-sided typicality of the likelihood."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from offmap.density.scores.bound import bits, negative_elbo
from offmap.density.scores.score import Judge, Models, Part, Score, Statistics


class Typicality(Score):
    r"""$\left| \mathrm{bpd}(x) - \overline{\mathrm{bpd}} \right|$: a row too likely is as odd as one too unlikely.

    The mean is taken over held-out normal rows. It is the test for typicality with batches of one row. Cost: one pass.
    Fails: on novel rows whose likelihood happens to be average, which a spread-out set of normal rows makes common.

    Reference: Nalisnick et al., Detecting Out-of-Distribution Inputs to Deep Generative Models Using Typicality,
    arXiv:1906.02994.
    """

    needs: ClassVar[frozenset[Part]] = frozenset({"held_out"})

    def statistics(self, models: Models, X: Tensor) -> Tensor:
        """Bits per dimension."""
        return bits(negative_elbo(models.network, X), X)[:, None]

    def judge(self, normal: Statistics) -> Judge:
        """The distance from the mean of ``normal``."""
        return _Distance(float(normal.mean()))


@dataclass(frozen=True)
class _Distance:
    centre: float

    def __call__(self, statistics: Tensor) -> Tensor:
        return (statistics[:, 0] - self.centre).abs()
