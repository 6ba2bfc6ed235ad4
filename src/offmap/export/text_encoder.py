"""The text encoder of a model, as a graph of its own beside the model's."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.data import TextEncoder, text_model
from offmap.data.text_graph import INPUTS, exported, quantised
from offmap.errors import WorkFailed
from offmap.onnx_graphs import required, session

ENCODER, TOKENIZER = "encoder.onnx", "tokenizer.json"
_SAMPLES = [
    "my card was stolen",
    "will it rain in Zürich today?",
    "a third text, which is somewhat longer than the rest",
]
# Of the vectors of the exported encoder with those of the library.
_LEAST_COSINE = 0.9999


def write_encoder(encoder: TextEncoder, folder: Path, texts: list[str] | None = None) -> None:
    """Writes the network and the tokenizer of a text encoder, after a check on texts.

    With ``backend="torch"`` the graph holds single precision and takes texts padded to one width. With
    ``backend="onnx"`` it is the 8-bit graph that the library runs, which needs onnxruntime.

    Args:
        encoder: The fitted encoder.
        folder: Where ``encoder.onnx`` and ``tokenizer.json`` are written.
        texts: Texts to check on, beside three samples.
    """
    network = encoder._network()
    tokenizer = getattr(network.tokenizer, "backend_tokenizer", None)
    if tokenizer is None:
        raise ValueError(f"the tokenizer of {encoder.model!r} has no form as one file; score texts with mlflow instead")
    graph = exported(network)
    graph = quantised(graph) if encoder.backend == "onnx" else graph
    about = {"max_tokens": str(text_model.token_limit(network)), "prompt": text_model.prompt_of(network)}
    required("onnx").helper.set_model_props(graph, about)
    content = graph.SerializeToString()
    _check(encoder, network, session(content), [*_SAMPLES, *(texts or ())])
    (folder / ENCODER).write_bytes(content)
    _write_tokenizer(tokenizer, folder / TOKENIZER)


def _write_tokenizer(tokenizer: Any, path: Path) -> None:
    """Writes a copy without the padding and the cut of the last call, which the user of the graph decides."""
    copy = type(tokenizer).from_str(tokenizer.to_str())
    copy.no_padding()
    copy.no_truncation()
    copy.save(str(path))


def _check(encoder: TextEncoder, network: Any, runtime: Any, texts: list[str]) -> None:
    expected = encoder.transform(texts)
    counts = np.minimum(text_model.count_tokens(network, texts), text_model.token_limit(network))
    found = np.concatenate([_vector(network, runtime, text, int(n)) for text, n in zip(texts, counts, strict=True)])
    lengths = np.linalg.norm(expected, axis=1) * np.linalg.norm(found, axis=1)
    least = float(((expected * found).sum(axis=1) / lengths).min())
    if not least >= _LEAST_COSINE:
        raise WorkFailed(f"the exported text encoder differs from the library: a cosine of {least:.4f}")


def _vector(network: Any, runtime: Any, text: str, width: int) -> NDArray[np.float32]:
    read = text_model.tokens(network, [text], width)
    vectors: list[NDArray[np.float32]] = runtime.run(None, {name: read[name].cpu().numpy() for name in INPUTS})
    return vectors[0]
