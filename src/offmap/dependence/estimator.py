"""What every estimator of mutual information that is a network obeys."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn

Bound = Literal["lower", "upper"]
Width = int | Sequence[int]


class Estimator(nn.Module, ABC):
    r"""An estimate of $I(x; y)$ in nats that is learnt from pairs and may be learnt through.

    ``loss`` is what to minimise for the estimator's own sake; ``value`` is the estimate. Both are differentiable in
    ``x`` and ``y``. Given a width, ``x`` is ``(n, width)`` and the value a number. Given a sequence of widths, the
    estimator is a stack of as many, which learn side by side: ``x`` is ``(terms, n, widest)``, narrow rows padded with
    zeros, and the value has one number a term.

    Subclasses write ``_pointwise`` and ``_loss``, and say what their value is to the truth:

    - ``bound``: "lower" or "upper", in expectation and for any parameters ("upper" once fitted); None if neither.
    - ``sound_to_maximise``: raising the value by moving ``x`` and ``y`` raises a lower bound of what they share.
    - ``sound_to_minimise``: lowering it lowers an upper bound.

    Args:
        x_width: Width of ``x``, or of each ``x`` of the stack.
        y_width: Width of ``y``, or of each ``y`` of the stack.
    """

    bound: Bound | None
    sound_to_maximise: bool
    sound_to_minimise: bool

    def __init__(self, x_width: Width, y_width: Width) -> None:
        super().__init__()
        self.stacked = not isinstance(x_width, int)
        self.x_widths, self.y_widths = _widths(x_width), _widths(y_width)
        if len(self.x_widths) != len(self.y_widths):
            raise ValueError(f"y_width must be as many as x_width, {len(self.x_widths)}; got {len(self.y_widths)}")

    def pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        """What each row adds to the value, which is the mean: ``(n,)``, or ``(terms, n)`` of a stack."""
        found = self._pointwise(*self._entered(x, y))
        return found if self.stacked else found.squeeze(0)

    def value(self, x: Tensor, y: Tensor) -> Tensor:
        """The estimate in nats: a number, or one a term of a stack."""
        return self.pointwise(x, y).mean(-1)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """The number to minimise over the estimator's parameters; of a stack, the sum over its terms."""
        return self._loss(*self._entered(x, y)).sum()

    @abstractmethod
    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        """What each row adds to the value, ``(terms, n)``."""

    @abstractmethod
    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss of each term, ``(terms,)``."""

    def _entered(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        pairs = []
        for name, rows, widths in (("x", x, self.x_widths), ("y", y, self.y_widths)):
            rows = rows if self.stacked else rows.unsqueeze(0)
            if rows.ndim != 3 or rows.shape[0] != len(widths) or rows.shape[2] != max(widths):
                wanted = f"({len(widths)}, n, {max(widths)})" if self.stacked else f"(n, {widths[0]})"
                raise ValueError(f"{name} must be of shape {wanted}; got {tuple(rows.shape[not self.stacked :])}")
            pairs.append(rows)
        if x.shape[-2] != y.shape[-2] or x.shape[-2] < 2:
            raise ValueError(f"x and y must have as many rows, at least 2; got {x.shape[-2]} and {y.shape[-2]}")
        return pairs[0], pairs[1]


def _widths(width: Width) -> tuple[int, ...]:
    widths = (width,) if isinstance(width, int) else tuple(width)
    if not widths or min(widths) < 1:
        raise ValueError(f"a width must be at least 1, and there must be one; got {width!r}")
    return widths
