"""Scoring in products of one fixed size, so that a row scores to the same bytes whatever rows come with it."""

import numpy as np
import torch
from torch import Tensor

from offmap.arrays import FloatArray
from offmap.errors import reason_of
from offmap.scores.score import ROWS_PER_PRODUCT, Outputs, Score


def scored(score: Score, outputs: Outputs) -> FloatArray:
    """The novelty of each row; a row so extreme that it overflows is infinitely novel.

    Example:
        >>> from offmap.scores import MaxLogit
        >>> scored(MaxLogit(), Outputs(logits=[[1.0, 2.0], [0.0, 0.5]]))
        array([-2. , -0.5])
    """
    found = np.empty(len(outputs))
    for start in range(0, len(outputs), score.rows_at_once):
        chunk = outputs.take(slice(start, start + score.rows_at_once))
        found[start : start + len(chunk)] = _novelty(score, _padded(chunk)).numpy()[: len(chunk)]
    return np.nan_to_num(found, nan=np.inf, posinf=np.inf, neginf=-np.inf)


def _novelty(score: Score, chunk: Outputs) -> Tensor:
    try:
        return score.novelty(chunk)
    except RuntimeError as error:
        name = type(score).__name__
        raise ValueError(
            f"features and logits must be as wide as those that {name} was fitted with: {reason_of(error)}"
        ) from error


def _padded(chunk: Outputs) -> Outputs:
    """The chunk with rows of zeros up to a whole number of products: those of another height may round differently."""
    parts, lacking = (chunk.features, chunk.logits), -len(chunk) % ROWS_PER_PRODUCT
    return Outputs(*(None if part is None else _with_zeros(part, lacking) for part in parts))


def _with_zeros(part: Tensor, count: int) -> Tensor:
    return torch.cat([part, part.new_zeros(count, part.shape[1])])
