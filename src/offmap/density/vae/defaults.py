"""Defaults that depend on the rows: their shape, and for features how they correlate."""

from dataclasses import dataclass

import torch
from torch import Tensor

from offmap.density.vae.network import NetworkKind
from offmap.nets.image_rule import is_image, is_large_image


@dataclass(frozen=True)
class Defaults:
    """The default settings for rows of one shape.

    Args:
        shape: Shape of a row, ``(d,)`` or ``(h, w, c)``.

    Example:
        >>> Defaults((28, 28, 1)).network, Defaults((8,)).network
        ('conv', 'mlp')
    """

    shape: tuple[int, ...]

    @property
    def images(self) -> bool:
        """Whether rows are images."""
        return is_image(self.shape)

    @property
    def colour(self) -> bool:
        """Whether rows are colour images."""
        return self.images and self.shape[-1] > 1

    @property
    def score(self) -> str:
        """The novelty score: the likelihood has blind spots on images, which the two-sided likelihood path avoids."""
        return "lpath" if self.images else "bpd"

    @property
    def network(self) -> NetworkKind:
        """The kind of encoder and decoder."""
        return ("dcgan" if self.colour else "conv") if is_large_image(self.shape) else "mlp"

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers of the "mlp"."""
        return (256, 128) if self.images else (64,)

    @property
    def shift(self) -> float:
        """Each coordinate of the mean of the negatives' prior."""
        return 25.0 if self.colour else 8.0

    @property
    def steps(self) -> int:
        """Gradient steps."""
        return 10_000 if self.images else 2_000

    @property
    def patience(self) -> int | None:
        """Epochs to wait for a better validation bound; only features need it, since networks overfit them soon."""
        return None if self.images else 10

    def latent_dim(self, X: Tensor) -> int:
        """Latent dimensions: for features, the number of principal components with 90 % of the variance."""
        if self.images:
            return 100 if self.colour else 10
        correlations = torch.atleast_2d(X.double().T.corrcoef()).nan_to_num()
        variances = torch.linalg.eigvalsh(correlations).clamp(min=0)
        shares = variances.flip(0).cumsum(0) / variances.sum().clamp(min=1e-12)
        return int((shares < 0.9).sum().clamp(1, 31)) + 1
