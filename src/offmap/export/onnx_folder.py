"""Writes a fitted model as ONNX."""

import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from offmap.data import TextEncoder
from offmap.export.checking import Check, check
from offmap.export.folders import new_folder
from offmap.export.graph import graph_of
from offmap.export.text_encoder import write_encoder

MODEL = "model.onnx"


def export_onnx(model: Any, folder: str | os.PathLike[str], check_on: Any = None) -> Check:
    """Writes a fitted model as an ONNX graph that scores any number of rows, after a check against the library.

    The folder gets ``model.onnx``: features or images in; ``novelty``, ``p_value``, ``novel`` and, from a classifier,
    ``label`` out. A model of texts also gets ``encoder.onnx`` and ``tokenizer.json``, which turn texts into its
    features. A model of a table of numbers takes its columns as doubles, with NaN for gaps, in the order that the
    metadata of the graph name as ``columns``.

    Args:
        model: A fitted detector or classifier, or a ``Guarded`` torch module.
        folder: A new or empty folder.
        check_on: Rows, as the model takes them, on which graph and library must agree, beside random ones.

    Raises:
        CannotExport: The model's scoring has no form as ONNX; the message says why.
        WorkFailed: Graph and library differ by more than rounding. Nothing is written.

    Example:
        >>> import tempfile, numpy as np
        >>> from offmap.density import MahalanobisDetector
        >>> X = np.random.default_rng(0).normal(size=(300, 3))
        >>> with tempfile.TemporaryDirectory() as place:
        ...     checked = export_onnx(MahalanobisDetector(random_state=0).fit(X), f"{place}/exported", check_on=X)
        ...     os.listdir(f"{place}/exported"), checked.rows
        (['model.onnx'], 556)
    """
    check_is_fitted(model, "promise_")
    with new_folder(folder) as fresh:
        graph = graph_of(model)
        found = check(graph, model, check_on)
        if isinstance(encoder := getattr(model, "encoder_", None), TextEncoder):
            write_encoder(encoder, fresh, None if check_on is None else [str(text) for text in check_on])
        (fresh / MODEL).write_bytes(graph.SerializeToString())
    return found
