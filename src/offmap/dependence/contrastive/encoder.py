"""A sentence encoder that learns from several views of each sentence, with no labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.optim import AdamW

from offmap import parameters
from offmap.dependence.contrastive.halves import Upper, states_below
from offmap.dependence.contrastive.strategies import STRATEGIES
from offmap.dependence.contrastive.templates import TEMPLATES
from offmap.nets import mlp
from offmap.parameters import Count, Positive
from offmap.random_state import draw_seed, local_seed
from offmap.train import Batch, Batches, History, descend, train

# Words of a text that are read: longer ones could push the gap of a template out of the model's reach.
_MOST_WORDS = 32
_HEAD = 256
# The head starts from nothing while the layers were trained, as in the thesis.
_HEAD_SPEED = 10.0


@dataclass(kw_only=True, eq=False, repr=False)
class SentenceViews(BaseEstimator):
    r"""Trains the last layers of a sentence encoder so that the views of a sentence share much.

    A view is a pass with dropout of its own, or a template of its own. Between views of one sentence, against those of
    the others in the batch, InfoNCE on cosines is raised: for pairs of views, or for the terms of their total
    correlation, $I(z_1; z_2) + I(z_3; z_4) + I(z_1 z_2; z_3 z_4)$. A small head on top of the vectors serves training
    only. The layers below stay as they are and are run once.

    Args:
        strategy: "mi-fix", "mi-sample", "core-view", "full-graph" or "tc-tree".
        views: "dropout" for passes with dropout and the mean over tokens; "templates" for sentences in frames with a
            gap, whose state stands for the sentence.
        count: How many views; of templates there are four.
        start: "trained" goes on from the model's own layers; "reset" starts them anew, for something to learn.
        layers: How many of the last layers learn.
        temperature: What cosines are divided by.
        epochs: Passes over the sentences; 0 leaves the start as it is.
        batch_size: Sentences a step.
        lr: Learning rate of the layers; that of the head is ten times as high.
        model: "minilm", or the name or the folder of a sentence-transformers model.
        random_state: Seed; with one, the same sentences give the same encoder.
        device: Where torch works, such as "cpu" or "cuda".

    Reference: Bai et al., Estimating Total Correlation with Mutual Information Estimators, arXiv:2011.04794; Gao, Yao
    and Chen, SimCSE, arXiv:2104.08821.

    Example:
        >>> texts = ["a cat sleeps", "a kitten naps", "stocks fell today", "shares dropped", "it rains", "rain falls"]
        >>> encoder = SentenceViews(epochs=1, batch_size=6, layers=1, random_state=0).fit(texts)
        >>> cat, kitten, stocks, *_ = encoder.transform(texts)
        >>> bool(cat @ kitten > cat @ stocks)
        True
    """

    strategy: Literal["mi-fix", "mi-sample", "core-view", "full-graph", "tc-tree"] = "tc-tree"
    views: Literal["dropout", "templates"] = "dropout"
    count: Literal[2, 4, 8] = 4
    start: Literal["trained", "reset"] = "trained"
    layers: Count = 2
    temperature: Positive = 0.05
    epochs: parameters.Natural = 1
    batch_size: Count = 64
    lr: Positive = 1e-4
    model: str = "minilm"
    random_state: int | None = None
    device: str = "cpu"

    def fit(self, texts: Sequence[str], y: object = None) -> Self:
        """Learns from sentences; ``y`` is ignored."""
        parameters.check(self)
        if self.views == "templates" and self.count > len(TEMPLATES):
            raise ValueError(f"count must be at most {len(TEMPLATES)} with templates; got {self.count}")
        read = _checked(texts, least=2)
        self.history_: History = {}
        with local_seed(draw_seed(self.random_state)):
            self.upper_ = Upper(self.model, self.device, self.layers, reset=self.start == "reset")
            if self.epochs:
                self._train(read)
        self.upper_.eval()
        return self

    def transform(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors ``(n, d)`` of length 1; a text gets the same bytes whatever texts come with it."""
        check_is_fitted(self, "upper_")
        frame = 0 if self.views == "templates" else None
        vectors = self.upper_.vectors(self._states(_checked(texts), frame), self._gap(frame))
        return torch.nn.functional.normalize(vectors).cpu().numpy()

    def _train(self, texts: tuple[str, ...]) -> None:
        frames: list[int | None] = [*range(self.count)] if self.views == "templates" else [None] * self.count
        states = {frame: self._states(texts, frame) for frame in dict.fromkeys(frames)}
        head = mlp([next(iter(states.values()))[0].shape[1], _HEAD, _HEAD]).to(self.device)
        groups = [
            {"params": [*self.upper_.moving.parameters()], "lr": self.lr},
            {"params": [*head.parameters()], "lr": _HEAD_SPEED * self.lr},
        ]
        optimizer, strategy = AdamW(groups), STRATEGIES[self.strategy]

        def objective(batch: Batch) -> dict[str, Tensor]:
            rows = batch[0].tolist()
            made = [frames[view] for view in strategy.chosen(self.count)]
            vectors = [head(self.upper_([states[frame][row] for row in rows], self._gap(frame))) for frame in made]
            return {self.strategy: strategy.loss(vectors, self.temperature)}

        self.history_ = train(
            descend(optimizer, objective, clip=1.0),
            Batches((torch.arange(len(texts)),), self.batch_size),
            epochs=self.epochs,
            state={"upper": self.upper_, "head": head, "optimizer": optimizer},
            label=self.strategy,
        )

    def _states(self, texts: tuple[str, ...], frame: int | None) -> list[Tensor]:
        short = (" ".join(text.split()[:_MOST_WORDS]) for text in texts)
        framed = short if frame is None else map(TEMPLATES[frame].around, short)
        return states_below(self.model, self.device, self.layers, tuple(framed))

    def _gap(self, frame: int | None) -> int | None:
        return None if frame is None else TEMPLATES[frame].gap


def _checked(texts: Sequence[str], least: int = 1) -> tuple[str, ...]:
    if isinstance(texts, str) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise ValueError("texts must be a sequence of texts, each with something in it")
    if len(texts) < least:
        raise ValueError(f"texts must be at least {least}; got {len(texts)}")
    return tuple(str(text) for text in texts)
