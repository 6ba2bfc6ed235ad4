"""The last layer of all-mpnet-base-v2, tuned on top of stored token states."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from offmap.data.text_model import layers_of, load
from offmap.data.text_tuning import UpperLayers, tune_upper
from offmap.random_state import local_seed
from offmap_bench import mpnet
from offmap_bench.half_precision import half_precision
from offmap_bench.token_states import TokenStates

# Texts per batch when the layer embeds texts.
_TEXTS = 128


@dataclass(frozen=True)
class Tuning:
    """How long and how fast the layer learns.

    Args:
        epochs: Passes over the texts.
        batch_size: Texts per training step.
        lr: Learning rate.
        per_class: Most texts per class that it learns from.
    """

    epochs: int
    batch_size: int
    lr: float
    per_class: int


def tuned_layer(
    states: TokenStates, rows: NDArray[np.intp], codes: NDArray[Any], how: Tuning, seed: int
) -> UpperLayers:
    """Returns a copy of the last layer, trained so that embeddings of one class point in one direction.

    Args:
        states: What enters the layer.
        rows: The texts to learn from.
        codes: Their class codes 0, 1, ….
        how: The schedule.
        seed: Seed of the texts, the batches and dropout.
    """
    network = copy.deepcopy(load(str(mpnet.folder()), "cpu"))
    moving = layers_of(network)
    del moving[:-1]
    chosen = some_of_each(codes, how.per_class, np.random.default_rng(seed))
    rows, y = rows[chosen], torch.from_numpy(codes[chosen])
    upper, given = UpperLayers(network), (states.of(rows), states.vectors[rows], y)
    with local_seed(seed), half_precision():
        tune_upper(upper, moving, *given, epochs=how.epochs, batch_size=how.batch_size, lr=how.lr)
    return upper


def some_of_each(codes: NDArray[Any], most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draws at most so many rows of each class.

    Example:
        >>> np.bincount(np.repeat([0, 1], [5, 2])[some_of_each(np.repeat([0, 1], [5, 2]), 3, np.random.default_rng(0))])
        array([3, 2])
    """
    order = rng.permutation(len(codes))
    return np.sort(np.concatenate([order[codes[order] == code][:most] for code in np.unique(codes)]))


@torch.no_grad()
def embed(upper: UpperLayers, states: Sequence[Tensor]) -> NDArray[np.float32]:
    """Returns embeddings of unit length."""
    order = np.argsort([len(state) for state in states])
    found = torch.empty(len(states), states[0].shape[1])
    with half_precision():
        for batch in np.split(order, range(_TEXTS, len(order), _TEXTS)):
            found[batch] = normalize(upper([states[row] for row in batch]).float())
    return found.numpy()
