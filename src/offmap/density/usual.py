"""What suits rows where the user leaves it open, read from their shape and their spread."""

from dataclasses import dataclass

import torch
from torch import Tensor

from offmap.density.vae import Network


@dataclass(frozen=True)
class Usual:
    """The usual choices for rows of one shape.

    Args:
        shape: Shape of a row, ``(d,)`` or ``(h, w, c)``.

    Example:
        >>> Usual((28, 28, 1)).score, Usual((28, 28, 1)).network
        ('views', 'conv')
        >>> Usual((8,)).score, Usual((8,)).network
        ('nearest', 'mlp')
    """

    shape: tuple[int, ...]

    @property
    def images(self) -> bool:
        """Whether rows are images."""
        return len(self.shape) == 3

    @property
    def colour(self) -> bool:
        """Whether they are images in colour."""
        return self.images and self.shape[-1] > 1

    @property
    def textured(self) -> bool:
        """Whether they are images large enough to have parts that share weights, and texture to view."""
        return self.images and min(self.shape[:2]) >= _SMALLEST_WITH_TEXTURE

    @property
    def score(self) -> str:
        """What novelty is read from."""
        return "views" if self.textured else "nearest"

    @property
    def network(self) -> Network:
        """The kind of encoder and decoder."""
        return ("dcgan" if self.colour else "conv") if self.textured else "mlp"

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers of perceptrons."""
        return (256, 128) if self.images else (64,)

    @property
    def shift(self) -> float:
        """Each coordinate of the centre of the negatives' prior."""
        return 25.0 if self.colour else 8.0

    @property
    def steps(self) -> int:
        """Steps of training."""
        return 10_000 if self.images else 2_000

    @property
    def patience(self) -> int | None:
        """Epochs to wait for a better bound: a network soon knows a few rows of features by heart."""
        return None if self.images else 10

    def latent(self, X: Tensor) -> int:
        """Latent dimensions: for features, as many as there are principal components with 90 % of the variance."""
        if self.images:
            return 100 if self.colour else 10
        correlations = torch.atleast_2d(X.double().T.corrcoef()).nan_to_num()
        variances = torch.linalg.eigvalsh(correlations).clamp(min=0)
        shares = variances.flip(0).cumsum(0) / variances.sum().clamp(min=1e-12)
        return int((shares < 0.9).sum().clamp(1, 31)) + 1


_SMALLEST_WITH_TEXTURE = 16
