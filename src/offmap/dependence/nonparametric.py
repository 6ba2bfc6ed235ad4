"""Wraps estimators that have nothing to learn as torch modules."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from offmap.dependence.estimator import Estimator, Width
from offmap.dependence.validation import FloatArray

Pointwise = Callable[..., FloatArray]


class NonparametricEstimator(Estimator):
    """Makes an ``Estimator`` of a function on arrays: it has a value, but no gradient and nothing to fit.

    Args:
        function: Maps a list of arrays ``(n, d)`` to the contribution of each row.
        x_width: Width of ``x``, or one width per term of a stack.
        y_width: Width of ``y``, or one width per term of a stack.
        settings: Passed on to ``function``, such as ``n_neighbors``.

    Example:
        >>> from offmap.dependence.nearest_neighbors import ksg_pointwise
        >>> x = torch.linspace(0, 1, 20)[:, None]
        >>> NonparametricEstimator(ksg_pointwise, 1, 1, n_neighbors=3).value(x, x).item() > 1
        True
    """

    bound = None
    sound_to_maximise = False
    sound_to_minimise = False

    def __init__(self, function: Pointwise, x_width: Width, y_width: Width, **settings: int | str) -> None:
        super().__init__(x_width, y_width)
        self.function = function
        self.settings = settings

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        terms = zip(_arrays(x, self.x_widths), _arrays(y, self.y_widths), strict=True)
        found = [torch.from_numpy(self.function(pair, **self.settings)) for pair in terms]
        return torch.stack(found).to(x)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        raise ValueError(
            "loss needs an estimator with parameters, such as 'js' or 'infonce'; a nonparametric one has only value"
        )


def _arrays(rows: Tensor, widths: Sequence[int]) -> list[FloatArray]:
    """Rows of each term without their padding."""
    whole = rows.detach().double().cpu().numpy()
    return [own[:, :width] for own, width in zip(whole, widths, strict=True)]
