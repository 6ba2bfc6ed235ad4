"""Calling and checking the log density that a user gives."""

from collections.abc import Callable

import torch
from torch import Tensor

LogDensity = Callable[..., Tensor]


def evaluate(log_density: LogDensity, x: Tensor, context: Tensor | None = None) -> Tensor:
    """Calls a log density with flat rows and reshapes its values to the shape of the samples.

    Args:
        log_density: Called with points ``(m, d)``, and contexts ``(m, c)`` if there are any; returns ``(m,)``.
        x: Samples, ``(..., n, d)``.
        context: Contexts, ``(..., c)``.
    """
    rows = x.reshape(-1, x.shape[-1])
    if context is None:
        return log_density(rows).reshape(x.shape[:-1])
    repeated = context.unsqueeze(-2).expand(*x.shape[:-1], context.shape[-1])
    return log_density(rows, repeated.reshape(len(rows), -1)).reshape(x.shape[:-1])


def require_log_density(log_density: LogDensity | None) -> LogDensity:
    """Returns the log density, or raises a ``ValueError`` if none was given."""
    if log_density is None:
        raise ValueError("log_density must be given, in the constructor or by set_params")
    return log_density


def require_usable(log_density: LogDensity, x: Tensor, context: Tensor | None = None) -> None:
    """Raises a ``ValueError`` if the log density or its gradient cannot be used at the points ``(m, d)``.

    Samplers call it once before training, so that a mistake in the function shows up with a clear message.
    """
    rows = x.detach().requires_grad_()
    with torch.enable_grad():
        values = log_density(rows) if context is None else log_density(rows, context)
    if not isinstance(values, Tensor) or values.shape != rows.shape[:1]:
        found = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else f"a {type(values).__name__}"
        expected = f"a tensor of shape {tuple(rows.shape[:1])}, one value per point"
        raise ValueError(f"log_density must return {expected}; got {found}")
    _require_finite("a finite value at every point", values)
    if not values.requires_grad:
        raise ValueError("log_density must be differentiable: compute it with torch from the points it is called with")
    (gradient,) = torch.autograd.grad(values.sum(), rows, allow_unused=True)
    if gradient is None:
        raise ValueError("log_density must depend on the points it is called with; its gradient does not reach them")
    _require_finite("a finite gradient at every point", gradient)


def _require_finite(expected: str, values: Tensor) -> None:
    values = values.detach()
    bad = ~values.isfinite()
    if bad.any():
        example = float(values[bad][0])
        raise ValueError(
            f"log_density must have {expected}; got {example} for {int(bad.sum())} of {bad.numel()} values. "
            "If points outside a box are impossible, pass the box as support"
        )
