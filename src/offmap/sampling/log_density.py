"""Calling and checking the log density that a user gives."""

from collections.abc import Callable

import torch
from torch import Tensor

from offmap.train import TrainingError

LogDensity = Callable[..., Tensor]

_DIFFERENTIABLE = "log_density must be differentiable: compute it with torch from the points it is called with"


def evaluate(log_density: LogDensity, x: Tensor, context: Tensor | None = None) -> Tensor:
    """Calls a log density with flat rows and returns its values in the shape and type of the samples.

    Args:
        log_density: Called with points ``(m, d)``, and contexts ``(m, c)`` if there are any; returns ``(m,)``.
        x: Samples, ``(..., n, d)``.
        context: Contexts, ``(..., c)``.
    """
    rows = x.reshape(-1, x.shape[-1])
    if context is None:
        return log_density(rows).reshape(x.shape[:-1]).to(x.dtype)
    repeated = context.unsqueeze(-2).expand(*x.shape[:-1], context.shape[-1])
    return log_density(rows, repeated.reshape(len(rows), -1)).reshape(x.shape[:-1]).to(x.dtype)


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
    values = _values(log_density, rows, context)
    if not isinstance(values, Tensor) or values.shape != rows.shape[:1]:
        found = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else f"a {type(values).__name__}"
        expected = f"a tensor of shape {tuple(rows.shape[:1])}, one value per point"
        raise ValueError(f"log_density must return {expected}; got {found}")
    _require_finite("a finite value at every point", values)
    if not values.requires_grad:
        raise ValueError(_DIFFERENTIABLE)
    (gradient,) = torch.autograd.grad(values.sum(), rows, allow_unused=True)
    if gradient is None:
        raise ValueError("log_density must depend on the points it is called with; its gradient does not reach them")
    _require_finite("a finite gradient at every point", gradient)


def require_possible(x: Tensor, values: Tensor, remedy: str) -> None:
    """Raises a ``TrainingError`` if samples lie where their log density ``values`` is not finite.

    Args:
        x: Samples, ``(..., n, d)``.
        values: The log density at each of them, ``(..., n)``.
        remedy: What to do about a density that is zero in some places.

    Example:
        >>> x = torch.tensor([[0.0], [4.0]])
        >>> require_possible(x, torch.tensor([0.0, -torch.inf]), "pass its box as support")
        Traceback (most recent call last):
        offmap.train.TrainingError: log_density is -inf at 1 of 2 samples; pass its box as support
    """
    bad = ~values.isfinite()
    if not bad.any():
        return
    if not x.isfinite().all():
        raise TrainingError(
            "the samples became nan or infinite; try a smaller lr, and check that the gradient of log_density is "
            "finite and that log_density falls towards infinity"
        )
    example = float(values.detach()[bad][0])
    raise TrainingError(f"log_density is {example} at {int(bad.sum())} of {bad.numel()} samples; {remedy}")


def _values(log_density: LogDensity, rows: Tensor, context: Tensor | None) -> Tensor:
    try:
        with torch.enable_grad():
            return log_density(rows) if context is None else log_density(rows, context)
    except RuntimeError as error:
        # What torch says when NumPy is given a tensor that gradients flow through.
        if "numpy() on Tensor that requires grad" in str(error):
            raise ValueError(_DIFFERENTIABLE) from None
        raise


def _require_finite(expected: str, values: Tensor) -> None:
    values = values.detach()
    bad = ~values.isfinite()
    if bad.any():
        example = float(values[bad][0])
        raise ValueError(
            f"log_density must have {expected}; got {example} for {int(bad.sum())} of {bad.numel()} values. "
            "If points outside a box are impossible, pass the box as support"
        )
