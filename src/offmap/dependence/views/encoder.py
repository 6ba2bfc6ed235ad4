"""A sentence encoder trained on several views of each sentence, without labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.optim import AdamW

from offmap import parameters
from offmap.dependence.estimator import BatchSize
from offmap.dependence.views.layers import TokenReader, TopLayers
from offmap.dependence.views.strategies import STRATEGIES, Strategy
from offmap.dependence.views.view import View, as_views
from offmap.nets import mlp
from offmap.parameters import Count, Device, Natural, Positive
from offmap.random_state import draw_seed, local_seed
from offmap.train import Batch, Batches, History, descend, train

_HEAD_WIDTH = 256
# The head starts from random weights, the layers from trained ones.
_HEAD_LR_FACTOR = 10.0


@dataclass(kw_only=True, eq=False, repr=False)
class MultiViewEncoder(BaseEstimator):
    r"""Tunes the top layers of a sentence encoder so that views of the same sentence get similar embeddings.

    A view is a pass with its own dropout, a rewritten text, or both. Training maximises InfoNCE on cosines between
    views of one sentence, against the views of the other sentences in the batch: for pairs of views, or for the terms
    of their total correlation, $I(z_1; z_2) + I(z_3; z_4) + I(z_1 z_2; z_3 z_4)$. A small head on top of the embeddings
    is used in training only. The lower layers are frozen and read each text once.

    Args:
        strategy: Which views are pulled together: "mi_fix", "mi_sample", "core_view", "full_graph", "tc_tree", or a
            ``Strategy``.
        views: A number of passes with dropout over the unchanged sentence, or a sequence of ``View``. The first view is
            the one that ``transform`` uses.
        tune_layers: Number of top layers that are trained. More can change the model more and cost more time.
        reset_layers: Whether the trained layers start from random weights instead of the model's own.
        max_words: Words of a text that are read; the rest is cut off.
        temperature: Divides the cosines; lower values punish near misses more.
        epochs: Passes over the sentences; 0 keeps the model as it is.
        batch_size: Sentences per step. InfoNCE cannot exceed its logarithm.
        lr: Learning rate of the layers; that of the head is ten times as high.
        model: "minilm", or the name or folder of a sentence-transformers model.
        random_state: Seed; with the same seed, the same sentences give the same encoder.
        device: Torch device, such as "cpu" or "cuda".

    Attributes:
        layers_: The trained layers.
        history_: Mean loss of each epoch, under "loss"; empty if ``epochs`` is 0.

    Reference: Bai et al., Estimating Total Correlation with Mutual Information Estimators, arXiv:2011.04794; Gao, Yao
    and Chen, SimCSE, arXiv:2104.08821.

    Example:
        >>> texts = ["a cat sleeps", "a kitten naps", "stocks fell today", "shares dropped", "it rains", "rain falls"]
        >>> encoder = MultiViewEncoder(epochs=1, batch_size=6, tune_layers=1, random_state=0).fit(texts)
        >>> cat, kitten, stocks, *_ = encoder.transform(texts)
        >>> bool(cat @ kitten > cat @ stocks)
        True
    """

    strategy: str | Strategy = "tc_tree"
    views: Count | tuple[View, ...] = 4
    tune_layers: Count = 2
    reset_layers: bool = False
    max_words: Count = 32
    temperature: Positive = 0.05
    epochs: Natural = 1
    batch_size: BatchSize = 64
    lr: Positive = 1e-4
    model: str = "minilm"
    random_state: Natural | None = None
    device: Device = "cpu"

    def fit(self, texts: Sequence[str], y: object = None, *, reader: TokenReader | None = None) -> Self:
        """Trains on sentences.

        Args:
            texts: The sentences, at least 2.
            y: Ignored.
            reader: Reuses the token states that a reader of the same model has kept.
        """
        parameters.check(self)
        read, strategy = _checked(texts, least=2), self._strategy()
        strategy.check(len(as_views(self.views)))
        self.history_: History = {}
        with local_seed(draw_seed(self.random_state)):
            self.layers_ = TopLayers(self.model, self.device, self.tune_layers, reset=self.reset_layers)
            if self.epochs:
                self._train(read, strategy, self._reader(reader))
        self.layers_.eval()
        return self

    def transform(self, texts: Sequence[str], *, reader: TokenReader | None = None) -> NDArray[np.float32]:
        """Returns embeddings ``(n, d)`` of length 1; a text gets the same bytes whatever texts come with it.

        Args:
            texts: The sentences.
            reader: Reuses the token states that a reader of the same model has kept.
        """
        check_is_fitted(self, "layers_")
        view = as_views(self.views)[0]
        states = self._states(_checked(texts), view, self._reader(reader))
        return torch.nn.functional.normalize(self.layers_.embeddings(states, view.token)).cpu().numpy()

    def _strategy(self) -> Strategy:
        if isinstance(self.strategy, Strategy):
            return self.strategy
        if self.strategy not in STRATEGIES:
            known = ", ".join(map(repr, STRATEGIES))
            raise ValueError(f"strategy must be one of {known}, or a Strategy; got {self.strategy!r}")
        return STRATEGIES[self.strategy]

    def _reader(self, reader: TokenReader | None) -> TokenReader:
        wanted = (self.model, self.tune_layers, self.device)
        if reader is None:
            return TokenReader(*wanted)
        if (found := (reader.model, reader.tune_layers, reader.device)) != wanted:
            raise ValueError(f"reader must have the model, tune_layers and device {wanted}; got {found}")
        return reader

    def _train(self, texts: tuple[str, ...], strategy: Strategy, reader: TokenReader) -> None:
        views = as_views(self.views)
        states = {view: self._states(texts, view, reader) for view in dict.fromkeys(views)}
        head = mlp([next(iter(states.values()))[0].shape[1], _HEAD_WIDTH, _HEAD_WIDTH]).to(self.device)
        groups = [
            {"params": [*self.layers_.trainable.parameters()], "lr": self.lr},
            {"params": [*head.parameters()], "lr": _HEAD_LR_FACTOR * self.lr},
        ]
        optimizer = AdamW(groups)

        def objective(batch: Batch) -> dict[str, Tensor]:
            rows = batch[0].tolist()
            chosen = [views[place] for place in strategy.choose(len(views))]
            vectors = [head(self.layers_([states[view][row] for row in rows], view.token)) for view in chosen]
            return {"loss": strategy.loss(vectors, self.temperature)}

        self.history_ = train(
            descend(optimizer, objective, clip=1.0),
            Batches((torch.arange(len(texts)),), self.batch_size),
            epochs=self.epochs,
            state={"layers": self.layers_, "head": head, "optimizer": optimizer},
            label="sentence views",
        )

    def _states(self, texts: tuple[str, ...], view: View, reader: TokenReader) -> list[Tensor]:
        return reader.states([view.text(" ".join(text.split()[: self.max_words])) for text in texts])


def _checked(texts: Sequence[str], least: int = 1) -> tuple[str, ...]:
    if isinstance(texts, str) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise ValueError("texts must be a sequence of strings, none of them empty")
    if len(texts) < least:
        raise ValueError(f"texts must be at least {least}; got {len(texts)}")
    return tuple(str(text) for text in texts)
