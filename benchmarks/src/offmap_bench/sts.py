"""Semantic textual similarity: do cosines of embeddings agree with the ratings that people gave?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import spearmanr

from offmap.data import load_table

SETS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STSB", "SICK-R")
Encode = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class RatedPairs:
    """Pairs of sentences with the similarity that people gave them, and the set each pair belongs to."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    score: NDArray[np.float64]
    dataset: NDArray[np.object_]


def sts_pairs(split: str = "test", *, limit: int | None = None, sets: Sequence[str] = SETS) -> RatedPairs:
    """Reads the pairs of a split of each set; the subsets of a set are taken together (the setting "all").

    Args:
        split: "train", "dev" or "test"; only STSB and SICK-R have the first two.
        limit: Largest number of pairs per set, always the same ones.
        sets: Names of the sets.

    Raises:
        DataNotFound: The pairs are not on this machine.
    """
    frame = load_table("sts", "pairs")
    taken = [_some(frame[(frame["dataset"] == name) & (frame["split"] == split)], limit) for name in sets]
    chosen = pd.concat(taken)
    left, right = (tuple(chosen[side].astype(str)) for side in ("text_a", "text_b"))
    return RatedPairs(left, right, chosen["score"].to_numpy(np.float64), chosen["dataset"].to_numpy(object))


def _some(frame: pd.DataFrame, limit: int | None) -> pd.DataFrame:
    if frame.empty:
        raise ValueError("split must be 'test', or 'train' or 'dev' of the sets STSB and SICK-R alone")
    return frame if limit is None or limit >= len(frame) else frame.sample(limit, random_state=0)


def spearman(encode: Encode, pairs: RatedPairs) -> dict[str, float]:
    """Returns Spearman's correlation between cosines and ratings per set; each distinct sentence is encoded once.

    Args:
        encode: Turns sentences into embeddings.
        pairs: The pairs, from one set or several.

    Example:
        >>> names = np.array(["tiny"] * 3, object)
        >>> pairs = RatedPairs(("a", "a", "b"), ("a", "b", "c"), np.array([5.0, 3.0, 1.0]), names)
        >>> places = {"a": [1.0, 0.0], "b": [1.0, 1.0], "c": [-1.0, 0.0]}
        >>> spearman(lambda texts: np.array([places[text] for text in texts], np.float32), pairs)
        {'tiny': 1.0}
    """
    texts = [*dict.fromkeys(pairs.left + pairs.right)]
    place = {text: row for row, text in enumerate(texts)}
    vectors = encode(texts).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    left, right = (vectors[[place[text] for text in side]] for side in (pairs.left, pairs.right))
    cosines = (left * right).sum(1)
    names = dict.fromkeys(pairs.dataset)
    return {name: _correlation(cosines[pairs.dataset == name], pairs.score[pairs.dataset == name]) for name in names}


def _correlation(cosines: NDArray[np.float64], scores: NDArray[np.float64]) -> float:
    return float(spearmanr(cosines, scores).statistic)
