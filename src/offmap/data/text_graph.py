"""Sentence encoders as ONNX graphs: the same network in single precision, and one that multiplies 8-bit integers."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from offmap.onnx_graphs import required, traced

__all__ = ["INPUTS", "OUTPUT", "RECIPE", "exported", "quantised"]

INPUTS, OUTPUT = ("input_ids", "attention_mask"), "sentence_embedding"
# What a stored 8-bit graph and its vectors depend on besides the network: another number whenever this module changes.
RECIPE = "int8 by row 1"

# Weights have 7 bits: on processors without 8-bit dot products, sums of two products of 8 bits would overflow.
_WEIGHT_LEVELS, _ACTIVATION_LEVELS = 64, 127
_SMALLEST = np.float32(1e-12)


class _Embedding(nn.Module):
    """The whole encoder, with pooling and normalisation, as a function of tensors."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.network({"input_ids": input_ids, "attention_mask": attention_mask})["sentence_embedding"]


def exported(network: Any) -> Any:
    """Returns the encoder as an ONNX model of ``input_ids`` and ``attention_mask``, ``(texts, tokens)`` of any size.

    Args:
        network: A sentence-transformers model.

    Raises:
        ValueError: The network holds something that ONNX does not have.
    """
    ids, mask = torch.ones(2, 8, dtype=torch.long), torch.tensor([[1] * 8, [1] * 5 + [0] * 3])
    sizes = {0: "texts", 1: "tokens"}
    try:
        return traced(_Embedding(network), (ids, mask), (sizes, sizes), (INPUTS, [OUTPUT]))
    except ValueError as error:
        raise ValueError(f'backend must be "torch" for {type(network[0].auto_model).__name__}: {error}') from None


def quantised(model: Any) -> Any:
    r"""Replaces each product with a constant matrix by one of 8-bit integers, for onnxruntime.

    A row $x$ becomes $q = \mathrm{round}(127\,x / \max_j |x_j|)$, and each column of the matrix integers up to 64.
    Every row has a scale of its own: a text gets the same vector whatever texts are encoded with it, which one scale
    for the whole batch, as onnxruntime's own dynamic quantisation has it, would not give.

    Args:
        model: An ONNX model; it is changed.
    """
    onnx = required("onnx")
    graph, constants = model.graph, _Constants(onnx, model.graph)
    nodes: list[Any] = []
    scaled: set[str] = set()
    for node in graph.node:
        matrix = constants.matrix(node.input[1]) if node.op_type == "MatMul" else None
        if matrix is None:
            nodes.append(node)
            continue
        row = node.input[0]
        nodes += [] if row in scaled else _quantised_rows(onnx.helper.make_node, row)
        nodes += _integer_product(onnx.helper.make_node, row, constants.columns(node.input[1], matrix), node.output[0])
        scaled.add(row)
    del graph.node[:]
    graph.node.extend(nodes)
    constants.drop_unused()
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    return model


def _quantised_rows(make: Any, row: str) -> list[Any]:
    return [
        make("Abs", [row], [f"{row}:abs"]),
        make("ReduceMax", [f"{row}:abs", "rows:axis"], [f"{row}:max"], keepdims=1),
        make("Max", [f"{row}:max", "rows:smallest"], [f"{row}:scale"]),
        make("Div", [row, f"{row}:scale"], [f"{row}:unit"]),
        make("QuantizeLinear", [f"{row}:unit", "rows:step", "rows:zero"], [f"{row}:int8"]),
    ]


def _integer_product(make: Any, row: str, columns: tuple[str, str], output: str) -> list[Any]:
    weights, scales = columns
    inputs = [f"{row}:int8", weights, "rows:one", scales, "rows:zero"]
    return [
        make("MatMulIntegerToFloat", inputs, [f"{output}:unit"], domain="com.microsoft"),
        make("Mul", [f"{output}:unit", f"{row}:scale"], [output]),
    ]


class _Constants:
    """The constants of a graph."""

    def __init__(self, onnx: Any, graph: Any) -> None:
        self._onnx, self._graph = onnx, graph
        self._known = {each.name: each for each in graph.initializer}
        self._add("rows:axis", np.array([-1]))
        self._add("rows:smallest", np.array(_SMALLEST))
        self._add("rows:step", np.array(1 / _ACTIVATION_LEVELS, np.float32))
        self._add("rows:zero", np.array(128, np.uint8))
        self._add("rows:one", np.array(1, np.float32))

    def matrix(self, name: str) -> NDArray[np.float32] | None:
        """Returns a constant matrix, or None if ``name`` is something else."""
        found = self._known.get(name)
        return self._onnx.numpy_helper.to_array(found) if found is not None and len(found.dims) == 2 else None

    def columns(self, name: str, matrix: NDArray[np.float32]) -> tuple[str, str]:
        """Adds the integers of a matrix and the scale of each column, and returns their names."""
        scale = np.maximum(np.abs(matrix).max(axis=0), _SMALLEST) / _WEIGHT_LEVELS
        self._add(f"{name}:int8", np.rint(matrix / scale).astype(np.int8))
        self._add(f"{name}:scale", (scale / _ACTIVATION_LEVELS).astype(np.float32))
        return f"{name}:int8", f"{name}:scale"

    def drop_unused(self) -> None:
        """Removes constants that no node reads."""
        used = {name for node in self._graph.node for name in node.input}
        kept = [each for each in self._known.values() if each.name in used]
        del self._graph.initializer[:]
        self._graph.initializer.extend(kept)

    def _add(self, name: str, values: NDArray[Any]) -> None:
        self._known[name] = self._onnx.numpy_helper.from_array(values, name)
