"""Encoding texts with onnxruntime: graphs kept in the user's cache, batches of one length, all threads."""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from offmap.data import text_model
from offmap.data.text_cache import make_room
from offmap.data.text_graph import INPUTS, RECIPE, exported, quantised
from offmap.data.text_model import Part
from offmap.files import replacing
from offmap.onnx_graphs import session

__all__ = ["GRAPH_SUFFIX", "OnnxEncoder", "graph_of", "key_of", "parts"]

GRAPH_SUFFIX = ".graph"
# A graph of the default model has 59 MB, and each tuned model has one of its own.
_MOST_GRAPHS = 8
# Larger batches are hardly faster.
_BATCH = 256
_DIGEST = 32


def parts(counts: NDArray[np.intp], limit: int) -> Iterator[Part]:
    """Groups texts of the same number of tokens into batches, which then need no padding.

    Rows are scaled one by one, so that no text depends on the others; but sums over a batch of one run in another
    order than those of two, which is why a single text is encoded twice.

    Example:
        >>> [tuple(part) for part in parts(np.array([5, 300, 7, 5]), limit=256)]
        [(5, [0, 3], 2), (7, [2], 2), (256, [1], 2)]
    """
    widths = np.minimum(counts, limit)
    for width in np.unique(widths).tolist():
        members = np.flatnonzero(widths == width).tolist()
        size = max(_BATCH // width, 2)
        for start in range(0, len(members), size):
            some = members[start : start + size]
            yield Part(width, some, max(len(some), 2))


def key_of(identity: str) -> str:
    """Returns the digest of a model's 8-bit graph and vectors, which are kept apart from the vectors of torch."""
    return hashlib.sha256(f"{RECIPE} {identity}".encode()).hexdigest()


@final
class OnnxEncoder:
    """Encodes texts by the 8-bit graph of a network.

    Args:
        network: The sentence-transformers model, whose tokenizer is used.
        key: Digest of everything that the vectors depend on.
        folder: Where graphs are kept; None keeps none.
    """

    def __init__(self, network: Any, key: str, folder: Path | None) -> None:
        self._network = network
        self._session = _opened(network, key, folder)

    def encoded(self, texts: Sequence[str], batches: Sequence[Part]) -> Iterator[NDArray[np.float32]]:
        """Returns the vectors of each batch, computed by as many threads as torch would use."""
        pool = ThreadPoolExecutor(torch.get_num_threads())
        try:
            yield from pool.map(lambda part: self._encode(texts, part), batches)
        finally:
            pool.shutdown(cancel_futures=True)

    def _encode(self, texts: Sequence[str], part: Part) -> NDArray[np.float32]:
        read = text_model.tokens(self._network, part.filled(texts), part.width)
        (vectors,) = self._session.run(None, {name: read[name].cpu().numpy() for name in INPUTS})
        return vectors[: len(part.members)]


def graph_of(network: Any, key: str, folder: Path | None) -> bytes:
    """Returns the 8-bit graph of a network: the stored one if there is one that is whole, or a new one."""
    path = None if folder is None else folder / f"{key[:24]}{GRAPH_SUFFIX}"
    stored = _read(path)
    if stored is None:
        stored = quantised(exported(network)).SerializeToString()
        _write(path, stored)
    return stored


# Callers share a session: it is large, and safe to run from several threads.
@lru_cache(maxsize=2)
def _opened(network: Any, key: str, folder: Path | None) -> Any:
    return session(graph_of(network, key, folder))


def _read(path: Path | None) -> bytes | None:
    """Returns what follows the digest in a file; None if the file is missing or damaged."""
    if path is not None:
        with suppress(OSError):
            content = path.read_bytes()
            if hashlib.sha256(content[_DIGEST:]).digest() == content[:_DIGEST]:
                make_room(path, _MOST_GRAPHS)
                return content[_DIGEST:]
    return None


def _write(path: Path | None, graph: bytes) -> None:
    """Stores a graph, whole or not at all; where nothing can be written, the next process makes it anew."""
    if path is not None:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            make_room(path, _MOST_GRAPHS)
            with replacing(path) as fresh:
                fresh.write_bytes(hashlib.sha256(graph).digest() + graph)
