"""Rows on which an exported graph is compared with its model."""

from collections.abc import Iterator
from copy import copy
from math import prod
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import nn

from offmap.calibration import Guarded
from offmap.export.guarded import probes_of
from offmap.export.number_columns import numbers_in, random_numbers
from offmap.export.scoring import input_dtype, table_encoder
from offmap.nets import Standardise
from offmap.verdict import Verdict

Inputs = dict[str, NDArray[Any]]
_ROWS = 256
# In standard deviations: rows inside, ordinary rows, and rows that most methods flag.
_SPREADS = (0.5, 1.0, 3.0)


def check_rows(model: Any, given: Any = None) -> Inputs:
    """The rows to compare on, by the name of the input: those given, then the model's own or random ones.

    Args:
        model: A fitted model.
        given: Rows as the model takes them.
    """
    if isinstance(model, Guarded):
        own = {name: rows.numpy() for name, rows in probes_of(model).items()}
    else:
        own = {"X": random_rows(model)}
    if given is None:
        return own
    if "X" not in own:
        raise ValueError("check must be left out for a model of Outputs: it is checked on its own calibration rows")
    return {"X": np.concatenate([as_input(model, given), own["X"]])}


def as_input(model: Any, X: Any) -> NDArray[Any]:
    """Rows as the exported graph takes them: past the text encoder, images as intensities, in its precision."""
    if (table := table_encoder(model)) is not None:
        return numbers_in(table, X)
    rows = np.asarray(model.encoder_.transform(X) if hasattr(model, "encoder_") else X)
    if isinstance(model, Guarded):
        return rows.astype(np.float32) if rows.dtype.kind == "f" else rows
    whole = rows.reshape(len(rows), *model.input_shape_)
    scale = 255.0 if whole.ndim == 4 and whole.dtype == np.uint8 else 1.0
    return (whole / scale).astype(torch.empty(0, dtype=input_dtype(model)).numpy().dtype)


def random_rows(model: Any) -> NDArray[Any]:
    """Rows around the means that a model learnt; where it learnt none, intensities or standard normal numbers."""
    rng, shape = np.random.default_rng(0), tuple(model.input_shape_)
    spread = rng.choice(_SPREADS, size=(_ROWS, 1))
    if (table := table_encoder(model)) is not None:
        return random_numbers(table, spread, rng)
    scaler = next(_scalers(model), None)
    if scaler is not None:
        drawn = scaler.mean.cpu().numpy() + spread * scaler.scale.cpu().numpy() * rng.normal(size=(_ROWS, prod(shape)))
    elif len(shape) == 3:
        drawn = rng.uniform(size=(_ROWS, prod(shape)))
    else:
        drawn = rng.normal(size=(_ROWS, prod(shape)))
    rows = drawn.reshape(_ROWS, *shape)
    if len(shape) == 3:
        rows = rows.clip(0, 1)
    if hasattr(model, "column_shift_"):
        rows = rows * model.column_scale_ + model.column_shift_
    return as_input(features_model(model), rows)


def assessed(model: Any, rows: NDArray[Any]) -> Verdict:
    """What a model says of the rows that its graph takes."""
    if (table := table_encoder(model)) is not None:
        return model.assess(pd.DataFrame(rows, columns=list(table.columns_)))
    return features_model(model).assess(rows)


def features_model(model: Any) -> Any:
    """A copy of a model that takes encoded rows without names, as its graph does."""
    bare = copy(model)
    for name in ("encoder_", "feature_names_in_"):
        bare.__dict__.pop(name, None)
    return bare


def _scalers(model: Any) -> Iterator[Standardise]:
    """The layers of a model that hold means and standard deviations of its features."""
    for value in vars(model).values():
        for layer in value.modules() if isinstance(value, nn.Module) else ():
            if isinstance(layer, Standardise) and layer.mean.numel() == prod(model.input_shape_):
                yield layer
