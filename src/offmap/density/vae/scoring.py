"""Novelty by any of the scores of a fitted detector."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from offmap.density.vae.scores import Networks, NoveltyFunction, Score, Statistics


@dataclass(frozen=True)
class Scorer:
    """Computes the novelty of rows by any score that has what it requires.

    Args:
        functions: The function from statistics to novelty of each score that compares with reference rows, by name.
    """

    functions: Mapping[str, NoveltyFunction]

    @classmethod
    def fit(cls, scores: Iterable[Score], reference: Mapping[str, Statistics]) -> Self:
        """Makes the functions of ``scores`` from the statistics of their reference rows."""
        ready = [score for score in scores if score.name in reference]
        return cls({score.name: score.novelty_function(reference[score.name]) for score in ready})

    def novelty(self, score: Score, networks: Networks, X: Tensor) -> Tensor:
        """Novelty of each prepared row by ``score``."""
        self._require_ready(score, networks)
        function = self.functions.get(score.name) or score.novelty_function(np.empty((0, 1)))
        # Reference statistics are on the CPU.
        return function(score.statistics(networks, X).cpu())

    def _require_ready(self, score: Score, networks: Networks) -> None:
        available = {"held_out": score.name in self.functions, "training": score.name in self.functions}
        available |= {"background": networks.background is not None, "ensemble": len(networks.ensemble) > 0}
        if not all(available[part] for part in score.requires):
            how = f"fit with extra_scores=({score.name!r},)"
            raise ValueError(f"the score {score.name!r} was not prepared by fit: {how}")


def reference_statistics(
    scores: Iterable[Score], networks: Networks, held_out: Tensor, training: Tensor
) -> dict[str, Statistics]:
    """The statistics of prepared reference rows, for each score that compares with them, by name.

    Args:
        scores: The scores.
        networks: The fitted networks.
        held_out: Rows that were not trained on.
        training: Rows that were trained on.
    """
    # Training rows fill up a small held-out set: they look a little too normal, but too few rows are worse.
    unseen = torch.cat([held_out, training[: max(_FEWEST_HELD_OUT - len(held_out), 0)]])
    known = torch.cat([held_out, training])
    known = known[torch.randperm(len(known))[:_MOST_TRAINING]]
    rows = {"held_out": unseen[:_MOST_HELD_OUT], "training": known}
    with torch.inference_mode():
        return {
            score.name: _statistics(score, networks, rows[part])
            for score in scores
            for part in score.requires & rows.keys()
        }


def _statistics(score: Score, networks: Networks, X: Tensor) -> Statistics:
    parts = [score.statistics(networks, some) for some in X.split(256)]
    return torch.cat(parts).double().cpu().numpy()


_FEWEST_HELD_OUT, _MOST_HELD_OUT, _MOST_TRAINING = 1_000, 2_000, 10_000
