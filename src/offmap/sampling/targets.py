"""The log density that a user gives: tried once, before any training, so that what is wrong with it is said plainly."""

from collections.abc import Callable

import torch
from torch import Tensor

LogDensity = Callable[..., Tensor]


def evaluate(log_density: LogDensity, x: Tensor, context: Tensor | None = None) -> Tensor:
    """Calls a log density with flat rows and gives its answer the shape of the samples.

    Args:
        log_density: Called with points ``(m, d)``, and contexts ``(m, c)`` if there are any; answers ``(m,)``.
        x: Samples, ``(..., n, d)``.
        context: Contexts, ``(..., c)``.
    """
    rows = x.reshape(-1, x.shape[-1])
    if context is None:
        return log_density(rows).reshape(x.shape[:-1])
    repeated = context.unsqueeze(-2).expand(*x.shape[:-1], context.shape[-1])
    return log_density(rows, repeated.reshape(len(rows), -1)).reshape(x.shape[:-1])


def require_usable(log_density: LogDensity, x: Tensor, context: Tensor | None = None) -> None:
    """Raises a ``ValueError`` if the log density of these points, ``(m, d)``, is not one that a sampler can follow."""
    rows = x.detach().requires_grad_()
    with torch.enable_grad():
        answer = log_density(rows) if context is None else log_density(rows, context)
    if not isinstance(answer, Tensor) or answer.shape != rows.shape[:1]:
        found = f"shape {tuple(answer.shape)}" if isinstance(answer, Tensor) else f"a {type(answer).__name__}"
        raise ValueError(f"log_density must return a tensor of shape {tuple(rows.shape[:1])}, one a point; got {found}")
    _require_finite("a finite number for every point", answer)
    if not answer.requires_grad:
        raise ValueError("log_density must carry a gradient: compute it with torch, from the points that it is given")
    (slope,) = torch.autograd.grad(answer.sum(), rows, allow_unused=True)
    if slope is None:
        raise ValueError("log_density must depend on the points that it is given; its gradient does not reach them")
    _require_finite("a finite gradient at every point", slope)


def _require_finite(what: str, values: Tensor) -> None:
    values = values.detach()
    bad = ~values.isfinite()
    if bad.any():
        example = float(values[bad][0])
        raise ValueError(
            f"log_density must have {what}; got {example} for {int(bad.sum())} of {bad.numel()} values. "
            "If points outside a box are impossible, give the box as support"
        )
