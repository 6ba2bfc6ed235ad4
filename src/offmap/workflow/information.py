"""All that a model file says of itself."""

import os
from collections.abc import Sequence
from typing import Any

from offmap import tensorfile
from offmap.data import TableEncoder
from offmap.estimator import encoder_of
from offmap.workflow.fitting import Estimator, load_model, summary_of


def information_on(path: str | os.PathLike[str], trusted: Sequence[str] = ()) -> dict[str, Any]:
    """What was fitted and how, what is promised, which columns the model reads, and the versions that made it."""
    model = load_model(path, trusted)
    parameters = {name: value for name, value in model.get_params(deep=False).items() if value is not None}
    known = {"model": os.fspath(path), **summary_of(model)}
    known["parameters"] = {name: _shown(value) for name, value in parameters.items()}
    known["roles"] = {name: value for name, value in getattr(model, "roles_", {}).items() if value not in (None, ())}
    known["columns"] = _columns(model)
    known["versions"] = tensorfile.read(path)["versions"]
    return {name: value for name, value in known.items() if value not in ({}, None, [])}


def _columns(model: Estimator) -> Any:
    encoder = encoder_of(model)
    if isinstance(encoder, TableEncoder):
        return {line.column: f"{line.kind}: {line.about}" for line in encoder.schema().itertuples()}
    return list(map(str, getattr(model, "feature_names_in_", [])))


def _shown(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | tuple | list) else repr(value)
