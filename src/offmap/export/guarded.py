"""``Guarded`` as a function of tensors: of rows, if it guards a torch module, or of outputs computed elsewhere."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from offmap.calibration import Guarded
from offmap.calibration.module_outputs import evaluating
from offmap.scores import Outputs

Classified = tuple[Tensor | None, Tensor]


def guarded_scores(model: Guarded) -> Callable[..., Classified]:
    """Returns the function from the inputs of a guarded classifier to probabilities and novelty."""
    _require_tensors(model)
    if model.classifier_ is None:
        names = tuple(probes_of(model))
        return lambda *parts: _classified(model, Outputs(**dict(zip(names, parts, strict=True))))
    return lambda X: _classified(model, _outputs(model, X))


def probes_of(model: Guarded) -> dict[str, Tensor]:
    """The calibration rows that the fingerprint keeps, by the name of the input."""
    probes = model.fingerprint_.probes_
    if model.classifier_ is None:
        return {name: probes[name] for name in ("features", "logits") if probes[name] is not None}
    rows = torch.as_tensor(np.asarray(probes["rows"]))
    return {"X": rows.float() if rows.is_floating_point() else rows}


def _require_tensors(model: Guarded) -> None:
    """Refuses classifiers, scores and features that are no tensor algebra."""
    if model.classifier_ is not None and not isinstance(model.classifier_, nn.Module):
        kind = type(model.classifier_).__name__
        raise ValueError(f"its classifier is a {kind} of another library; guard a torch module, or Outputs")
    if model.score_ is None or callable(model.features):
        raise ValueError("novelty_score or features is a function; take a named score and the name of a layer")


def _classified(model: Guarded, outputs: Outputs) -> Classified:
    assert model.score_ is not None
    return outputs.logits.double().softmax(dim=1), model.score_._novelty(outputs)


def _outputs(model: Guarded, X: Tensor) -> Outputs:
    """What the module and its named layers return for rows."""
    module, found = model.classifier_, dict[str, Any]()
    layers = {"features": model.features, "logits": model.logits}
    hooks = [
        module.get_submodule(name).register_forward_hook(lambda _, __, output, role=role: found.update({role: output}))
        for role, name in layers.items()
        if isinstance(name, str)
    ]
    try:
        with evaluating(module):
            found.setdefault("logits", module(X))
    finally:
        for hook in hooks:
            hook.remove()
    return Outputs(**{role: _flat(values) for role, values in found.items()})


def _flat(values: Tensor) -> Tensor:
    return values.mean(dim=(2, 3)) if values.ndim == 4 else values.flatten(start_dim=1)
