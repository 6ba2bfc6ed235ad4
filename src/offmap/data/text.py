"""A scikit-learn transformer that turns texts into sentence embeddings."""

import hashlib
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d
from torch import Tensor

from offmap import parameters
from offmap.data import text_model
from offmap.data.text_cache import Embedding, EmbeddingCache, cache_file
from offmap.data.text_tuning import tune, tuned_copy
from offmap.parameters import Count, Device, Natural, Positive
from offmap.progress import bar
from offmap.random_state import draw_seed, local_seed
from offmap.train import History, check_history

__all__ = ["TextEncoder", "TextTruncated"]

# Half of a surrogate pair has no UTF-8 encoding.
_SURROGATE = re.compile("[\ud800-\udfff]")

Texts = str | Collection[str] | ArrayLike


class TextTruncated(UserWarning):
    """Some texts are longer than the model reads; the rest of each has no effect."""


@final
@dataclass(kw_only=True, eq=False, repr=False)
class TextEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Turns texts into embeddings: texts of similar meaning get similar vectors.

    The embedding of a text does not depend on the other texts of the call. Embeddings are cached on disk, so each text
    is encoded once. Of a text longer than the model reads (256 tokens, about 200 words, for the default model) only
    the beginning counts, with a ``TextTruncated`` warning.

    Args:
        model: "minilm" (all-MiniLM-L6-v2, 384 features of unit length; comes with the extra ``text`` and works
            offline), or the name or folder of a sentence-transformers model with ``.safetensors`` weights. A saved
            model that uses another than "minilm" is loaded with ``trusted=[name]`` only.
        download: Whether to download a model that is not on this machine; there is no network access otherwise.
        cache: Whether to cache embeddings in the user's cache folder, or another folder. The environment variable
            ``OFFMAP_CACHE`` moves the user's cache folder.
        tune_layers: How many of the last layers ``fit`` trains on the labels; 0 leaves the model as it is. Tune one or
            two layers if the labels follow distinctions that the model does not make by itself.
        epochs: Passes over the training texts.
        batch_size: Texts per training step.
        lr: Learning rate.
        random_state: Seed; with one, the same texts and labels give the same model.
        device: Where torch computes, such as "cpu" or "cuda".

    Attributes:
        tuned_: Tensors of the tuned layers by name; empty with ``tune_layers=0``.
        history_: Mean training loss per epoch, by name; empty with ``tune_layers=0``.

    Example:
        >>> texts = ["my card was stolen", "someone took my card", "will it rain today?"]
        >>> stolen, took, rain = TextEncoder(cache=False).transform(texts)
        >>> bool(stolen @ took > 2 * stolen @ rain)
        True

    Reference: Reimers and Gurevych, Sentence-BERT, arXiv:1908.10084.
    """

    # Decided where the model is used: a file must not choose where to write, or use the network.
    local_parameters: ClassVar[frozenset[str]] = frozenset({"cache", "download"})

    model: str = "minilm"
    download: bool = False
    cache: bool | str = True
    tune_layers: Natural = 0
    epochs: Count = 3
    batch_size: Count = 64
    lr: Positive = 1e-4
    random_state: int | None = None
    device: Device = "cpu"

    def fit(self, X: Texts, y: ArrayLike | None = None) -> Self:
        """Checks the texts ``X`` and, with ``tune_layers`` above 0, tunes the last layers on their classes ``y``."""
        parameters.check(self)
        texts = _checked(X)
        tuned, history = self._tune(texts, y) if self.tune_layers else ({}, {})
        self.tuned_, self.history_ = tuned, history
        return self

    def transform(self, X: Texts) -> NDArray[np.float32]:
        """Returns the embeddings ``(n, d)`` of the texts ``X``; a single text gives one row."""
        check_is_fitted(self)
        parameters.check(self)
        texts = _checked(X)
        found = self._embed(texts)
        if cut := sum(embedding.cut for embedding in found):
            message = (
                f"{cut} of {len(texts)} texts are longer than the model {self.model!r} reads; their ends are ignored"
            )
            warnings.warn(message, TextTruncated, stacklevel=3)
        return np.stack([embedding.vector for embedding in found])

    def __sklearn_is_fitted__(self) -> bool:
        return not self.tune_layers or hasattr(self, "tuned_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array, tags.input_tags.string = True, False, True
        tags.requires_fit = tags.target_tags.required = bool(self.tune_layers)
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the network: it is large, and rebuilt from ``tuned_`` when needed."""
        return {name: value for name, value in super().__getstate__().items() if name != "_built"}

    def _untrusted(self) -> tuple[str, ...]:
        """What a file must not follow without consent: any model but the one whose files are known."""
        return () if self.model == text_model.MINILM else (self.model,)

    def _check_fitted(self) -> None:
        check_history(getattr(self, "history_", {}))
        if not all(isinstance(name, str) and isinstance(value, Tensor) for name, value in self._tuned().items()):
            raise ValueError("tuned_ must hold tensors by name")

    @property
    def _n_features_out(self) -> int:
        check_is_fitted(self)
        return len(self._embed(["width"])[0].vector)

    def _tune(self, texts: list[str], y: ArrayLike | None) -> tuple[dict[str, Tensor], History]:
        codes = torch.from_numpy(_codes(texts, y))
        network = text_model.load(self.model, self.device, self.download)
        with local_seed(draw_seed(self.random_state)):
            return tune(
                network,
                texts,
                codes,
                layers=self.tune_layers,
                epochs=self.epochs,
                batch_size=self.batch_size,
                lr=self.lr,
            )

    def _embed(self, texts: Sequence[str]) -> list[Embedding]:
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        with EmbeddingCache(cache_file(self.cache, self.model, self._identity())) as cache:
            found = cache.find(dict.fromkeys(keys))
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
            for some in self._encode(missing):
                cache.keep(some)
                found.update(some)
        return [found[key] for key in keys]

    def _encode(self, missing: dict[bytes, str]) -> Iterator[dict[bytes, Embedding]]:
        """Encodes texts batch by batch."""
        if not missing:
            return
        network, keys, texts = self._network(), list(missing), list(missing.values())
        counts, limit = text_model.count_tokens(network, texts), text_model.token_limit(network)
        with bar("encoding", total=len(texts)) as shown:
            for part in text_model.parts(counts, limit):
                rows = part.members
                vectors = text_model.encoded(network, texts, part)
                yield {
                    keys[row]: Embedding(vector, counts[row] > limit) for row, vector in zip(rows, vectors, strict=True)
                }
                shown.advance(len(rows))

    def _network(self) -> Any:
        network = text_model.load(self.model, self.device, self.download)
        if not self._tuned():
            return network
        wanted = self.device, self._identity()
        if getattr(self, "_built", (None, None))[0] != wanted:
            self._built = wanted, tuned_copy(network, self._tuned())
        return self._built[1]

    def _identity(self) -> str:
        """Returns a digest of everything that an embedding depends on besides its text."""
        parts = text_model.identity(self.model, self.device, self.download), text_model.digest(self._tuned())
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()

    def _tuned(self) -> dict[str, Tensor]:
        return getattr(self, "tuned_", {})


def _checked(X: Any) -> list[str]:
    """Returns the texts of ``X`` as a list, or raises a ``ValueError``."""
    texts = [X] if isinstance(X, str) else X
    if not isinstance(texts, Collection) or isinstance(texts, bytes | Mapping | Set) or getattr(texts, "ndim", 1) != 1:
        raise ValueError(f"X must be a text or a one-dimensional list or array of texts; got {type(X).__name__}")
    if not len(texts):
        raise ValueError("X holds no texts; give at least one")
    for position, text in enumerate(texts):
        if problem := _problem(text):
            raise ValueError(f"X[{position}] {problem}; every item of X must be a non-empty text")
    return [str(text) for text in texts]


def _problem(text: object) -> str:
    if not isinstance(text, str):
        return f"is {text!r}, a {type(text).__name__}" if text is not None else "is None"
    if not text.strip():
        return "is empty"
    return "has half a surrogate pair, which is not a character" if _SURROGATE.search(text) else ""


def _codes(texts: list[str], y: ArrayLike | None) -> NDArray[np.int64]:
    """Returns the code of the class of each text."""
    if y is None:
        raise ValueError("tune_layers above 0 requires y to be passed, but the target y is None")
    labels = column_or_1d(y)
    check_consistent_length(texts, labels)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError("y holds one class only; tune_layers above 0 needs two or more")
    return codes
