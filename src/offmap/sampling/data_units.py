"""Units in which columns of data are near 0 and of moderate size, as networks and their initial weights expect."""

import torch
from torch import Tensor, nn

from offmap.nets import Standardise

# A column is left as it is while its mean is no farther from 0 than this, in units of the larger of its standard
# deviation and the scale, and while its standard deviation is within this factor of the scale.
_FARTHEST, _LARGEST_FACTOR = 5.0, 10.0


def column_units(X: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """The offset and the unit of each column: 0 and 1, or where it lies far from 0 or is of another size, its own.

    A column in its own units has a mean of 0 and a standard deviation of ``scale``.

    Args:
        X: Rows, ``(n, d)``.
        scale: The standard deviation that a sampler starts with.

    Example:
        >>> offset, unit = column_units(torch.tensor([[1.0, 999.0, 0.0], [-1.0, 1001.0, 800.0]]), scale=1.0)
        >>> offset.tolist(), unit.tolist()
        ([0.0, 1000.0, 400.0], [1.0, 1.0, 400.0])
    """
    precise = X.double()
    mean, spread = precise.mean(dim=0), precise.std(dim=0, correction=0)
    # A constant column has no size of its own.
    spread = torch.where(spread > 0, spread, scale)
    far = mean.abs() > _FARTHEST * spread.clamp(min=scale)
    other_size = (spread > _LARGEST_FACTOR * scale) | (spread * _LARGEST_FACTOR < scale)
    changed = far | other_size
    return torch.where(changed, mean, 0.0), torch.where(changed, spread / scale, 1.0)


class Unstandardise(nn.Module):
    """Undoes ``Standardise``, as the last layer of a generator.

    Args:
        layer: The layer to undo.

    Example:
        >>> layer = Standardise(1).fit(torch.tensor([[1.0], [5.0]]))
        >>> Unstandardise(layer)(torch.tensor([[-1.0], [1.0]]))
        tensor([[1.],
                [5.]])
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, layer: Standardise) -> None:
        super().__init__()
        self.register_buffer("mean", layer.mean.clone())
        self.register_buffer("scale", layer.scale.clone())

    def forward(self, X: Tensor) -> Tensor:
        """Rows in the units of the data."""
        return self.mean + self.scale * X
