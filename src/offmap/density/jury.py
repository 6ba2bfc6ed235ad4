"""The judges of a detector's scores, and what they are shown of normal rows before they judge others."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from offmap.density.scores import SCORES, Judge, Models, Score, Statistics


@dataclass(frozen=True)
class Jury:
    """Novelty by any score that has what it needs.

    Args:
        judges: Those that have seen normal rows, by the names of their scores.
    """

    judges: Mapping[str, Judge]

    @classmethod
    def shown(cls, normal: Mapping[str, Statistics]) -> Self:
        """Judges who know what their scores saw in normal rows."""
        return cls({name: SCORES[name].judge(statistics) for name, statistics in normal.items()})

    def novelty(self, name: str, models: Models, X: Tensor) -> Tensor:
        """Novelty of each prepared row by the score called ``name``."""
        self._require_ready(name, models)
        score = SCORES[name]
        judge = self.judges.get(name) or score.judge(np.empty((0, 1)))
        # Judges hold what they know of normal rows in plain memory.
        return judge(score.statistics(models, X).cpu())

    def _require_ready(self, name: str, models: Models) -> None:
        there = {"held_out": name in self.judges, "training": name in self.judges}
        there |= {"background": models.background is not None, "ensemble": len(models.ensemble) > 0}
        if not all(there[part] for part in SCORES[name].needs):
            raise ValueError(f"score {name!r} needs to be made ready while fitting: fit with also=({name!r},)")


def survey(names: Collection[str], models: Models, held_out: Tensor, training: Tensor) -> dict[str, Statistics]:
    """What each of the named scores that compare with normal rows sees in prepared ones.

    Args:
        names: The scores.
        models: The fitted networks.
        held_out: Rows that were kept aside.
        training: Rows that were trained on.
    """
    # Too few kept aside are joined by training rows: some that are too familiar are better than none.
    aside = torch.cat([held_out, training[: max(_ENOUGH - len(held_out), 0)]])
    known = torch.cat([held_out, training])
    known = known[torch.randperm(len(known))[:_MOST_COMPARED]]
    rows = {"held_out": aside[:_MOST_ASIDE], "training": known}
    asked = {name: SCORES[name] for name in names}
    with torch.inference_mode():
        return {n: _seen(score, models, rows[part]) for n, score in asked.items() for part in score.needs & rows.keys()}


def _seen(score: Score, models: Models, X: Tensor) -> Statistics:
    parts = [score.statistics(models, some) for some in X.split(256)]
    return torch.cat(parts).double().cpu().numpy()


# Rows kept aside that are enough to compare with, and the most that are; and the most training rows.
_ENOUGH, _MOST_ASIDE, _MOST_COMPARED = 1_000, 2_000, 10_000
