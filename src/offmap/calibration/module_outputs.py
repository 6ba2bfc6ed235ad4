"""Features and logits of a torch module, read by forward hooks."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from offmap.errors import reason_of
from offmap.scores import Outputs

_BATCH = 256


def module_outputs(module: nn.Module, X: Any, features: str | None, logits: str | None) -> Outputs:
    """Runs the module on rows, as it stands, and collects what the named layers return.

    Convolutional features ``(n, c, h, w)`` are averaged over their places; other features are flattened. The mode of
    the module (training or evaluation) is put back.

    Args:
        module: A trained network.
        X: Rows as the module takes them, an array or a tensor.
        features: Name of the layer whose output is the features; None for no features.
        logits: Name of the layer whose output is the logits; None for the output of the module itself.

    Example:
        >>> net = nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 3))
        >>> found = module_outputs(net, np.zeros((4, 2)), features="1", logits=None)
        >>> found.features.shape, found.logits.shape
        (torch.Size([4, 5]), torch.Size([4, 3]))
    """
    wanted = {"features": features, "logits": logits}
    layers = {role: _layer(module, role, name) for role, name in wanted.items() if name is not None}
    rows = _as_input(module, X)
    with evaluating(module), torch.no_grad():
        parts = [_run(module, rows[start : start + _BATCH], layers) for start in range(0, len(rows), _BATCH)]
    roles = ("features", "logits") if features is not None else ("logits",)
    return Outputs(**{role: torch.cat([part[role] for part in parts]) for role in roles})


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Puts every layer into evaluation mode, and back into the mode it was in."""
    before = {layer: layer.training for layer in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for layer, mode in before.items():
            layer.training = mode


def _layer(module: nn.Module, role: str, name: str) -> nn.Module:
    layers = dict(module.named_modules())
    if name not in layers or not name:
        known = ", ".join(repr(layer) for layer in layers if layer)
        raise ValueError(f"{role} must name a layer of {type(module).__name__}: {known}; got {name!r}")
    return layers[name]


def _as_input(module: nn.Module, X: Any) -> Tensor:
    """Rows as a tensor where the module computes; floats get the precision of its parameters."""
    rows = X if isinstance(X, Tensor) else torch.from_numpy(_numbers(module, X))
    if not len(rows):
        raise ValueError(f"X has 0 samples; {type(module).__name__} needs at least 1")
    weight = next((each for each in module.parameters() if each.is_floating_point()), torch.empty(0))
    return rows.to(weight.device, weight.dtype if rows.is_floating_point() else rows.dtype)


def _numbers(module: nn.Module, X: Any) -> NDArray[Any]:
    """A copy, since torch takes no rows that are read-only (as those of a frame are) or in reverse order."""
    rows = np.array(X, order="C")
    if rows.dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers, which {type(module).__name__} takes; got an array of {rows.dtype}")
    return rows


def _run(module: nn.Module, rows: Tensor, layers: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """The outputs of one batch, filled up to the fixed size, since products of another height round differently."""
    found: dict[str, Tensor] = {}

    def keep(role: str) -> Any:
        return lambda layer, given, output: found.__setitem__(role, output)

    hooks = [layer.register_forward_hook(keep(role)) for role, layer in layers.items()]
    try:
        output = module(torch.cat([rows, rows[:1].expand(_BATCH - len(rows), *rows.shape[1:])]))
    except RuntimeError as error:
        raise ValueError(f"X must be rows that {type(module).__name__} takes; it says: {reason_of(error)}") from error
    finally:
        for hook in hooks:
            hook.remove()
    if unused := sorted(layers.keys() - found.keys()):
        raise ValueError(f"{unused[0]} names a layer that {type(module).__name__} does not use; name one that it runs")
    return {role: _flat(role, values)[: len(rows)] for role, values in ({"logits": output} | found).items()}


def _flat(role: str, values: Any) -> Tensor:
    if not isinstance(values, Tensor):
        raise ValueError(f"{role} must come from a layer that returns one tensor; got a {type(values).__name__}")
    return (values.mean(dim=(2, 3)) if values.ndim == 4 else values.flatten(start_dim=1)).cpu()
