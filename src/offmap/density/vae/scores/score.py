"""The interface of a novelty score: statistics that the networks compute of a row, and their novelty."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import Tensor

from offmap.density.vae.network import VAE

Statistics = NDArray[np.float64]
NoveltyFunction = Callable[[Tensor], Tensor]
# Reference rows, held out or of the training set, or further networks.
Requirement = Literal["held_out", "training", "background", "ensemble"]


@dataclass(frozen=True)
class Networks:
    """The fitted networks that a score may use.

    Args:
        network: The autoencoder.
        background: One trained on mutated rows, where a score needs it.
        ensemble: Further autoencoders of the first kind, where a score needs them.
    """

    network: VAE
    background: VAE | None = None
    ensemble: Sequence[VAE] = field(default=())

    def draws(self, count: int) -> Tensor:
        """The latent noise for every row and every call, ``(count, 1, latent_dim)``: fixed, so that scores are too."""
        generator = torch.Generator().manual_seed(0)
        draws = torch.randn(count, 1, len(self.network.draw), generator=generator)
        return draws.to(self.network.draw.device)


@dataclass(kw_only=True, eq=False, repr=False)
class Score(BaseEstimator, ABC):
    """A novelty score of a fitted autoencoder; higher is more novel.

    ``statistics`` computes numbers from prepared rows; ``novelty_function`` turns them into novelty, by comparison with
    the statistics of reference rows if the score requires those. The fields of a subclass are its settings.
    """

    name: ClassVar[str]
    requires: ClassVar[frozenset[Requirement]] = frozenset()
    images_only: ClassVar[bool] = False

    @abstractmethod
    def statistics(self, networks: Networks, X: Tensor) -> Tensor:
        """Statistics of each prepared row, ``(n, k)``, from that row alone."""

    def novelty_function(self, reference: Statistics) -> NoveltyFunction:
        """Makes the function from statistics to novelty; ``reference`` is empty if the score requires no rows."""
        return _first_column


def _first_column(statistics: Tensor) -> Tensor:
    """The novelty of scores with one statistic, which is the novelty itself."""
    return statistics[:, 0]
