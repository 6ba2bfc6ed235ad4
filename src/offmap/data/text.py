"""A scikit-learn transformer that turns texts into sentence embeddings."""

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from offmap import parameters
from offmap.data import text_model, text_onnx
from offmap.data.text_cache import Embedding, EmbeddingCache, cache_file, cache_place
from offmap.data.text_checks import Texts, checked_texts, class_codes
from offmap.data.text_ngrams import NgramFeatures, check_arrays
from offmap.data.text_tuning import tune, tuned_copy
from offmap.parameters import Count, Device, Natural, NonNegative, Positive
from offmap.progress import bar
from offmap.random_state import draw_seed, local_seed
from offmap.train import History, check_history

__all__ = ["TextEncoder", "TextTruncated"]


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
        ngram_weight: Weight of features of the letters of a text, which are appended to its embedding; 0 for none.
            ``fit`` learns them from the training texts, without labels. Try 0.8 if single words tell the classes apart,
            such as names of products: embeddings blur them.
        epochs: Passes over the training texts.
        batch_size: Texts per training step.
        lr: Learning rate.
        random_state: Seed; with one, the same texts and labels give the same model.
        device: Where torch computes, such as "cpu" or "cuda".
        backend: "torch", or "onnx", which encodes more than twice as many texts per second on a processor by products
            of 8-bit integers; the vectors have a mean cosine of 0.996 with those of torch. The first use writes the
            network as an ONNX graph, which takes half a minute and is kept in the cache. It needs the extra ``export``.
            A model must score with the backend that it was fitted with.

    Attributes:
        tuned_: Tensors of the tuned layers by name; empty with ``tune_layers=0``.
        ngrams_: How letters become features, as two arrays by name; empty with ``ngram_weight=0``.
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
    ngram_weight: NonNegative = 0.0
    epochs: Count = 3
    batch_size: Count = 64
    lr: Positive = 1e-4
    random_state: int | None = None
    device: Device = "cpu"
    backend: Literal["torch", "onnx"] = "torch"

    def fit(self, X: Texts, y: ArrayLike | None = None) -> Self:
        """Checks the texts ``X``, tunes the last layers on their classes ``y``, and learns which letters they have."""
        self._check_parameters()
        texts = checked_texts(X)
        tuned, history = self._tune(texts, y) if self.tune_layers else ({}, {})
        ngrams = vars(NgramFeatures.fit(texts, draw_seed(self.random_state))) if self.ngram_weight else {}
        self.tuned_, self.history_, self.ngrams_ = tuned, history, ngrams
        return self

    def transform(self, X: Texts) -> NDArray[np.float32]:
        """Returns the embeddings ``(n, d)`` of the texts ``X``; a single text gives one row."""
        check_is_fitted(self)
        self._check_parameters()
        texts = checked_texts(X)
        found = self._embed(texts)
        if cut := sum(embedding.cut for embedding in found):
            message = (
                f"{cut} of {len(texts)} texts are longer than the model {self.model!r} reads; their ends are ignored"
            )
            warnings.warn(message, TextTruncated, stacklevel=3)
        vectors = np.stack([embedding.vector for embedding in found])
        return self._letters().beside(vectors, texts, self.ngram_weight) if self.ngram_weight else vectors

    def __sklearn_is_fitted__(self) -> bool:
        tuned = not self.tune_layers or hasattr(self, "tuned_")
        return tuned and (not self.ngram_weight or bool(getattr(self, "ngrams_", {})))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array, tags.input_tags.string = True, False, True
        tags.target_tags.required = bool(self.tune_layers)
        tags.requires_fit = bool(self.tune_layers or self.ngram_weight)
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
        if self.ngram_weight and hasattr(self, "ngrams_"):
            check_arrays(self.ngrams_)

    @property
    def _n_features_out(self) -> int:
        check_is_fitted(self)
        return len(self._embed(["width"])[0].vector) + (len(self._letters().axes) if self.ngram_weight else 0)

    def _letters(self) -> NgramFeatures:
        return NgramFeatures(**self.ngrams_)

    def _tune(self, texts: list[str], y: ArrayLike | None) -> tuple[dict[str, Tensor], History]:
        codes = torch.from_numpy(class_codes(texts, y))
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
            for rows, vectors in self._vectors(network, texts, counts):
                yield {
                    keys[row]: Embedding(vector, counts[row] > limit) for row, vector in zip(rows, vectors, strict=True)
                }
                shown.advance(len(rows))

    def _vectors(
        self, network: Any, texts: list[str], counts: NDArray[np.intp]
    ) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """Returns the positions and the vectors of the texts of each batch."""
        limit = text_model.token_limit(network)
        if self.backend == "torch":
            for part in text_model.parts(counts, limit):
                yield part.members, text_model.encoded(network, texts, part)
            return
        batches = list(text_onnx.parts(counts, limit))
        encoder = text_onnx.OnnxEncoder(network, self._identity(), cache_place(self.cache))
        for part, vectors in zip(batches, encoder.encoded(texts, batches), strict=True):
            yield part.members, vectors

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
        whole = hashlib.sha256(" ".join(parts).encode()).hexdigest()
        return whole if self.backend == "torch" else text_onnx.key_of(whole)

    def _check_parameters(self) -> None:
        parameters.check(self)
        if self.backend == "onnx" and torch.device(self.device).type != "cpu":
            raise ValueError(f'device must be "cpu" with backend="onnx"; got {self.device!r}')

    def _tuned(self) -> dict[str, Tensor]:
        return getattr(self, "tuned_", {})
