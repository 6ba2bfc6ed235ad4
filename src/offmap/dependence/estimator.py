"""The interface of the estimators of mutual information that are torch modules."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Literal

from torch import Tensor, nn

from offmap.parameters import Limit

Bound = Literal["lower", "upper"]
Width = int | Sequence[int]
# Rows per batch: estimators compare each row with the others of its batch.
BatchSize = Annotated[int, Limit("at least 2", lambda value: value >= 2)]


class Estimator(nn.Module, ABC):
    r"""Estimates $I(x; y)$ in nats from a batch of pairs, as a differentiable torch module.

    Minimise ``loss`` to fit the estimator; read the estimate from ``value``. Both are differentiable in ``x`` and
    ``y``, so the estimate can itself be a loss for an encoder.

    With integer widths, ``x`` is ``(n, width)`` and the value is a scalar. With a sequence of widths the module is a
    *stack*: one estimator per term, trained side by side in one computation. Then ``x`` is ``(terms, n, widest)``,
    narrow rows are padded with zeros, and the value has one entry per term.

    Subclasses write ``_pointwise`` and ``_loss`` and state how the value relates to the truth:

    - ``bound``: "lower" or "upper" if the expected value is a bound for any parameters ("upper": once fitted), or None.
    - ``sound_to_maximise``: whether raising the value through ``x`` and ``y`` raises a lower bound of the information.
    - ``sound_to_minimise``: whether lowering it lowers an upper bound.

    Args:
        x_width: Width of ``x``, or one width per term of a stack.
        y_width: Width of ``y``, or one width per term of a stack.
    """

    bound: Bound | None
    sound_to_maximise: bool
    sound_to_minimise: bool

    def __init__(self, x_width: Width, y_width: Width) -> None:
        super().__init__()
        self.stacked = not isinstance(x_width, int)
        self.x_widths, self.y_widths = _widths("x_width", x_width), _widths("y_width", y_width)
        if len(self.x_widths) != len(self.y_widths):
            raise ValueError(
                f"y_width must have one width per term, like x_width with {len(self.x_widths)}; "
                f"got {len(self.y_widths)}"
            )

    def pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns the contribution of each row; the value is its mean. ``(n,)``, or ``(terms, n)`` for a stack."""
        found = self._pointwise(*self._checked(x, y))
        return found if self.stacked else found.squeeze(0)

    def value(self, x: Tensor, y: Tensor) -> Tensor:
        """Estimates the mutual information in nats: a scalar, or one entry per term of a stack."""
        return self.pointwise(x, y).mean(-1)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns the scalar to minimise over the estimator's parameters; for a stack, the sum over its terms."""
        return self.losses(x, y).sum()

    def losses(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns the loss of each term, ``(terms,)``."""
        return self._loss(*self._checked(x, y))

    @abstractmethod
    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        """Contribution of each row, ``(terms, n)``."""

    @abstractmethod
    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Loss of each term, ``(terms,)``."""

    def _checked(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        pairs = []
        # Parameters and data of different precision cannot be multiplied.
        dtype = next((parameter.dtype for parameter in self.parameters()), None)
        for name, rows, widths in (("x", x, self.x_widths), ("y", y, self.y_widths)):
            check_tensor(name, rows)
            rows = rows if dtype is None else rows.to(dtype)
            rows = rows if self.stacked else rows.unsqueeze(0)
            if rows.ndim != 3 or rows.shape[0] != len(widths) or rows.shape[2] != max(widths):
                wanted = f"({len(widths)}, n, {max(widths)})" if self.stacked else f"(n, {widths[0]})"
                raise ValueError(f"{name} must have shape {wanted}; got {tuple(rows.shape[not self.stacked :])}")
            pairs.append(rows)
        if x.shape[-2] != y.shape[-2] or x.shape[-2] < 2:
            raise ValueError(
                f"x and y must have the same number of rows, at least 2; got {x.shape[-2]} and {y.shape[-2]}"
            )
        return pairs[0], pairs[1]


def check_tensor(name: str, rows: object) -> None:
    """Raises a ``TypeError`` unless ``rows`` is a tensor."""
    if not isinstance(rows, Tensor):
        raise TypeError(f"{name} must be a tensor; got {type(rows).__name__}, which torch.as_tensor converts")


def _widths(name: str, width: Width) -> tuple[int, ...]:
    widths = (width,) if isinstance(width, int) else tuple(width)
    if not widths or min(widths) < 1:
        raise ValueError(f"{name} must be at least 1, or a sequence of such widths; got {width!r}")
    return widths
