"""A fitted model as one ONNX graph: rows in; novelty, p-value, decision and label out."""

import json
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from offmap import __version__
from offmap.errors import reason_of
from offmap.export.lookup import PValues
from offmap.export.scoring import CannotExport, examples_of, label_table, require_exportable, scores_of, table_encoder
from offmap.export.substitutes import Substitutes
from offmap.onnx_graphs import OPSET, required, traced

_PLACE = "place"


class _Decision(nn.Module):
    """Everything that a model says of rows."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._scores = scores_of(model)
        self._threshold = float(model.promise_.threshold_)
        self._p_values = PValues(model.promise_) if model.promise_.has_rows else None
        self._substitutes = Substitutes()

    def forward(self, first: Tensor, second: Tensor | None = None) -> tuple[Tensor, ...]:
        with self._substitutes.again():
            proba, raw = self._scores(first) if second is None else self._scores(first, second)
        # A row so extreme that it overflows the network is infinitely novel.
        novelty = torch.where(raw.isnan(), torch.inf, raw.double())
        novel = novelty > self._threshold
        p_value = () if self._p_values is None else (self._p_values(novelty),)
        if proba is None:
            return novelty, *p_value, novel
        known = torch.where(proba.isnan(), 1 / proba.shape[1], proba).argmax(dim=1)
        return novelty, *p_value, novel, torch.where(novel, proba.shape[1], known)


def graph_of(model: Any) -> Any:
    """Writes a fitted model as an ONNX model with any number of rows.

    The outputs are ``novelty``, ``p_value`` (if rows were held out), ``novel`` and, from a classifier, ``label``.

    Args:
        model: A fitted model of Offmap.

    Raises:
        CannotExport: Its scoring has no form as ONNX.

    Example:
        >>> from offmap.density import MahalanobisDetector
        >>> graph = graph_of(MahalanobisDetector(random_state=0).fit(np.random.default_rng(0).normal(size=(200, 3))))
        >>> [output.name for output in graph.graph.output]
        ['novelty', 'p_value', 'novel']
    """
    require_exportable(model)
    try:
        graph = _traced(model)
    except (ValueError, RuntimeError, TypeError) as error:
        raise CannotExport(f"{type(model).__name__} cannot be exported as ONNX, because {_reason(error)}") from None
    if (labels := label_table(model)) is not None:
        _look_labels_up(graph, labels)
    _describe(graph, model)
    return graph


def _traced(model: Any) -> Any:
    decision, examples = _Decision(model), examples_of(model)
    with torch.no_grad():
        decision(*examples.values())  # notes the random draws, which the graph then holds as constants
    p_value = ("p_value",) if model.promise_.has_rows else ()
    place = (_PLACE,) if hasattr(model, "classes_") else ()
    sizes = tuple({0: "rows"} for _ in examples)
    names = tuple(examples), ("novelty", *p_value, "novel", *place)
    return traced(decision, tuple(examples.values()), sizes, names)


def _look_labels_up(graph: Any, labels: np.ndarray[Any, Any]) -> None:
    """Replaces the output with the place of the class by the label at that place."""
    onnx = required("onnx")
    helper, text = onnx.helper, labels.dtype == object
    kind = onnx.TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(labels.dtype)
    values = [name.encode() for name in labels] if text else labels.tolist()
    graph.graph.initializer.append(helper.make_tensor("labels", kind, [len(labels)], values))
    graph.graph.node.append(helper.make_node("Gather", ["labels", _PLACE], ["label"]))
    rows = helper.make_tensor_value_info("label", kind, ["rows"])
    graph.graph.output[-1].CopyFrom(rows)


def _describe(graph: Any, model: Any) -> None:
    """Notes in the graph what it is: the method, the versions, and what its decisions promise."""
    about = {
        "offmap": __version__,
        "method": type(model).__name__,
        "opset": str(OPSET),
        "threshold": repr(float(model.promise_.threshold_)),
        "promise": model.promise_in_words,
    }
    if (table := table_encoder(model)) is not None:
        about["columns"] = json.dumps(list(table.columns_))
    required("onnx").helper.set_model_props(graph, about)
    graph.producer_name = "offmap"


def _reason(error: Exception) -> str:
    # The words of torch for a step into NumPy, which no user of a model could understand.
    return "its scoring leaves torch for NumPy" if ".numpy()" in str(error) else reason_of(error)
