"""What a score is: numbers read from a row by the fitted networks, and a judgement of those numbers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from offmap.density.vae import VAE

Statistics = NDArray[np.float64]
Judge = Callable[[Tensor], Tensor]
Part = Literal["held_out", "training", "background", "ensemble"]


@dataclass(frozen=True)
class Models:
    """What a score may look at.

    Args:
        network: The autoencoder.
        background: One trained on rows with their content disturbed, where a score needs it.
        ensemble: More of the first kind, where a score needs them.
        samples: Latent draws a row of scores that average over draws.
        steps: Steps of scores that optimise.
    """

    network: VAE
    background: VAE | None = None
    ensemble: Sequence[VAE] = field(default=())
    samples: int = 16
    steps: int = 50

    def draws(self) -> Tensor:
        """The latent noise of every row and every call, ``(samples, 1, latent)``: scores never change."""
        generator = torch.Generator().manual_seed(0)
        draws = torch.randn(self.samples, 1, len(self.network.draw), generator=generator)
        return draws.to(self.network.draw.device)


class Score(ABC):
    """A score of novelty; higher is more novel.

    ``statistics`` reads numbers from prepared rows. ``judge`` turns them into novelty, given the statistics of
    normal rows, kept aside or trained on, if the score needs those.
    """

    needs: ClassVar[frozenset[Part]] = frozenset()
    images_only: ClassVar[bool] = False

    @abstractmethod
    def statistics(self, models: Models, X: Tensor) -> Tensor:
        """Numbers of each prepared row, ``(n, k)``, from that row alone."""

    def judge(self, normal: Statistics) -> Judge:
        """Makes the function from statistics to novelty; ``normal`` has no rows where the score needs none."""
        return _only


def _only(statistics: Tensor) -> Tensor:
    """The novelty that a score's one statistic is."""
    return statistics[:, 0]
