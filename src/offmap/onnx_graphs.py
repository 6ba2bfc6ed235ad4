"""ONNX graphs: written from torch modules, and run. The libraries are imported when they are needed."""

import importlib
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from offmap.errors import reason_of

# The version of ONNX's operators that every graph is written in.
OPSET = 20


def traced(
    module: nn.Module, inputs: tuple[Tensor, ...], sizes: tuple[dict[int, Any], ...], names: tuple[Sequence[str], ...]
) -> Any:
    """Writes what ``module`` computes as an ONNX model.

    Args:
        module: Maps tensors to tensors.
        inputs: Examples of its inputs; no dimension that may vary has size 1.
        sizes: For each input the name of each dimension that may vary.
        names: The names of the inputs and of the outputs.

    Raises:
        ValueError: The module does something that ONNX has no operator for.
    """
    for library in ("onnx", "onnxscript"):
        required(library)
    given, returned = names
    try:
        with _quiet(), torch.no_grad():
            program = torch.onnx.export(
                module.eval(),
                inputs,
                dynamo=True,
                opset_version=OPSET,
                dynamic_shapes=sizes,
                input_names=list(given),
                output_names=list(returned),
                verbose=False,
            )
    except Exception as error:  # the exporter can fail in any way on what it does not know
        raise ValueError(f"ONNX has no form for it: {_cause(error)}") from None
    assert program is not None
    return program.model_proto


def session(model: bytes, threads: int = 1) -> Any:
    """Opens a graph in onnxruntime, on the processor, with so many threads per call."""
    runtime = required("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    # Only errors: a hint about the machine is nothing that the user can act on.
    options.log_severity_level = 3
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def required(name: str) -> Any:
    """Imports a library of the extra ``export``, or says how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ImportError(f"this needs {error.name}: pip install '.[export]' in Offmap's folder") from error


def _cause(error: BaseException) -> str:
    """What went wrong first, on one line: the exporter wraps it in pages of advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    return reason_of(error)[:300]


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences the exporter's warnings and its log, and restores their settings."""
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.ERROR)
        try:
            yield
        finally:
            logging.disable(before)
