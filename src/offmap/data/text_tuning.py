"""Tuning the last layers of a sentence encoder on texts of known classes."""

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torch.nn.utils.rnn import pad_sequence
from torch.optim import AdamW

from offmap.data.text_model import count_tokens, layers_of, token_limit, tokens
from offmap.progress import bar
from offmap.train import Batch, History, descend, train

__all__ = ["UpperLayers", "run_below", "tune", "tune_upper", "tuned_copy"]

# Inverse temperature of the softmax over cosines.
_SCALE = 20.0
# Tokens per batch of the fixed layers, which run once: large batches are faster.
_TOKENS = 2048


def tune(
    network: Any, texts: Sequence[str], codes: Tensor, *, layers: int, epochs: int, batch_size: int, lr: float
) -> tuple[dict[str, Tensor], History]:
    r"""Tunes the last layers so that embeddings of one class point in one direction.

    The loss is :math:`-\log \mathrm{softmax}_y(20 \cos(z, w_c))`, where :math:`z` is the vector of a text, :math:`y`
    its class and :math:`w_c` a learned direction per class, initially the mean of its texts. The layers below stay
    fixed: they run once per text, and their token states are kept in memory while tuning.

    Args:
        network: The model; it is copied, not changed.
        texts: The training texts.
        codes: The class code 0, 1, … of each text.
        layers: How many layers to train.
        epochs: Passes over the texts.
        batch_size: Texts per training step.
        lr: Learning rate.

    Returns:
        The tensors of the tuned layers, by their names in the list of all layers, and the mean loss per epoch.
    """
    own = copy.deepcopy(network)
    moving, first = layers_of(own), len(layers_of(own)) - layers
    if first < 0:
        raise ValueError(f"tune_layers must be at most {len(moving)}, the layers of the model; got {layers}")
    states, vectors = run_below(own, texts, moving[first])
    del moving[:first]
    upper = UpperLayers(own)
    if not _runs_alone(upper, states, vectors):
        raise ValueError(
            f"tune_layers must be 0: the last layers of {type(own[0].auto_model).__name__} cannot run alone"
        )
    history = tune_upper(upper, moving, states, vectors, codes, epochs=epochs, batch_size=batch_size, lr=lr)
    return {_shifted(name, first): tensor.cpu().clone() for name, tensor in moving.state_dict().items()}, history


def tune_upper(
    upper: "UpperLayers",
    moving: nn.ModuleList,
    states: Sequence[Tensor],
    vectors: Tensor,
    codes: Tensor,
    *,
    epochs: int,
    batch_size: int,
    lr: float,
) -> History:
    """Trains the upper layers in place, as ``tune`` does.

    Args:
        upper: The upper part of a model.
        moving: Its layers, which are trained.
        states: The token states of each text that enter them.
        vectors: The embeddings of the texts before training.
        codes: The class code 0, 1, … of each text.
        epochs: Passes over the texts.
        batch_size: Texts per training step.
        lr: Learning rate.

    Returns:
        The mean loss per epoch.
    """
    directions = nn.Parameter(_class_means(vectors, codes))
    optimizer = AdamW([*moving.parameters(), directions], lr=lr)

    def objective(batch: Batch) -> dict[str, Tensor]:
        rows, y = batch
        cosines = normalize(upper([states[row] for row in rows.tolist()])) @ normalize(directions).T
        return {"cross_entropy": cross_entropy(_SCALE * cosines, y.to(cosines.device))}

    return train(
        descend(optimizer, objective, clip=1.0),
        _SimilarLengths(torch.tensor([len(state) for state in states]), codes, batch_size),
        epochs=epochs,
        state={"upper": upper, "optimizer": optimizer},
        label="tuning",
    )


def tuned_copy(network: Any, tuned: dict[str, Tensor]) -> Any:
    """Returns a copy of ``network`` with the layers that ``tune`` returned."""
    own = copy.deepcopy(network)
    found = layers_of(own).load_state_dict(tuned, strict=False)
    if found.unexpected_keys:
        raise ValueError(f"tuned_ holds {found.unexpected_keys[0]!r}, which the model does not have")
    return own


class _Given(nn.Module):
    """Replaces the embedding layer of a model and returns given token states instead."""

    states: Tensor

    def forward(self, *_: Any, **__: Any) -> Tensor:
        return self.states


class UpperLayers(nn.Module):
    """The upper part of a model: maps token states to sentence embeddings."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network
        self.given = network[0].auto_model.embeddings = _Given()

    def forward(self, states: Sequence[Tensor]) -> Tensor:
        """Returns one embedding per text from the states of its tokens."""
        self.given.states = pad_sequence(list(states), batch_first=True)
        mask = pad_sequence([state.new_ones(len(state), dtype=torch.long) for state in states], batch_first=True)
        return self.network({"input_ids": torch.zeros_like(mask), "attention_mask": mask})["sentence_embedding"]


@dataclass(frozen=True)
class _SimilarLengths:
    """Random batches of texts of similar length, which need little padding; drawn anew for each epoch."""

    lengths: Tensor
    codes: Tensor
    size: int

    def __len__(self) -> int:
        return math.ceil(len(self.lengths) / self.size)

    def __iter__(self) -> Iterator[Batch]:
        order = (self.lengths * (1 + torch.rand(len(self.lengths)))).argsort()
        batches = order.tensor_split(len(self))
        for place in torch.randperm(len(self)).tolist():
            yield batches[place], self.codes[batches[place]]


@torch.no_grad()
def run_below(network: Any, texts: Sequence[str], layer: nn.Module) -> tuple[list[Tensor], Tensor]:
    """Returns the token states that enter ``layer`` for each text, and the embeddings of the texts."""
    found: dict[int, tuple[Tensor, Tensor]] = {}
    limit = token_limit(network)
    counts = count_tokens(network, texts).clip(max=limit)
    with _inputs_of(layer) as reached, bar("reading", total=len(texts)) as shown:
        for members in _of_similar_length(counts):
            read = tokens(network, [texts[row] for row in members], int(counts[members[-1]]))
            masks, vectors = read["attention_mask"].bool(), network(read)["sentence_embedding"]
            states = (state[mask] for state, mask in zip(reached.pop(), masks, strict=True))
            found.update(zip(members, zip(states, vectors, strict=True), strict=True))
            shown.advance(len(members))
    ordered = [found[row] for row in range(len(texts))]
    return [states for states, _ in ordered], torch.stack([vector for _, vector in ordered])


def _of_similar_length(counts: NDArray[np.intp]) -> Iterator[list[int]]:
    """Groups texts by length, the shortest first, into batches of about ``_TOKENS`` tokens.

    Example:
        >>> list(_of_similar_length(np.array([900, 5, 1900, 900])))
        [[1, 0], [3], [2]]
    """
    batch: list[int] = []
    for row in counts.argsort(kind="stable").tolist():
        if batch and counts[row] * (len(batch) + 1) > _TOKENS:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


@contextmanager
def _inputs_of(layer: nn.Module) -> Iterator[list[Tensor]]:
    """Collects the inputs of ``layer`` while the context is open."""
    reached: list[Tensor] = []

    def note(_: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Tensor]) -> None:
        reached.append(args[0] if args else kwargs["hidden_states"])

    hook = layer.register_forward_pre_hook(note, with_kwargs=True)
    yield reached
    hook.remove()


@torch.no_grad()
def _runs_alone(upper: UpperLayers, states: list[Tensor], vectors: Tensor) -> bool:
    """Returns whether the upper part alone reproduces the embeddings of the whole model."""
    try:
        return torch.allclose(upper(states[:4]), vectors[:4], atol=1e-3)
    except Exception:  # a model of another architecture can fail in any way
        return False


def _class_means(vectors: Tensor, codes: Tensor) -> Tensor:
    sums = vectors.new_zeros(int(codes.max()) + 1, vectors.shape[1])
    return normalize(sums.index_add(0, codes.to(vectors.device), normalize(vectors)))


def _shifted(name: str, first: int) -> str:
    """Renames a tensor from its place among the tuned layers to its place among all layers."""
    layer, _, rest = name.partition(".")
    return f"{first + int(layer)}.{rest}"
