"""Estimators without anything to learn, in the place of networks."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from offmap.dependence.door import FloatArray
from offmap.dependence.estimator import Estimator, Width

Pointwise = Callable[..., FloatArray]


class SampleEstimator(Estimator):
    """A function of arrays as an estimator: it has a value and no gradient, and nothing to fit.

    Args:
        pointwise: Maps a list of arrays ``(n, d)`` to what each row adds to the value.
        x_width: Width of ``x``, or of each ``x`` of the stack.
        y_width: Width of ``y``, or of each ``y`` of the stack.
        settings: Given to ``pointwise``, such as ``k``.

    Example:
        >>> from offmap.dependence.neighbours import ksg_pointwise
        >>> x = torch.linspace(0, 1, 20)[:, None]
        >>> SampleEstimator(ksg_pointwise, 1, 1, k=3).value(x, x).item() > 1
        True
    """

    bound = None
    sound_to_maximise = False
    sound_to_minimise = False

    def __init__(self, pointwise: Pointwise, x_width: Width, y_width: Width, **settings: int) -> None:
        super().__init__(x_width, y_width)
        self.function = pointwise
        self.settings = settings

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        terms = zip(_arrays(x, self.x_widths), _arrays(y, self.y_widths), strict=True)
        found = [torch.from_numpy(self.function(pair, **self.settings)) for pair in terms]
        return torch.stack(found).to(x)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        raise ValueError("there is nothing to fit in an estimator of samples; call value, or take one that is learnt")


def _arrays(rows: Tensor, widths: Sequence[int]) -> list[FloatArray]:
    """The rows of each term without their padding."""
    whole = rows.detach().double().cpu().numpy()
    return [own[:, :width] for own, width in zip(whole, widths, strict=True)]
