"""How to choose the threshold of an open-set classifier without open rows, measured on known classes only."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap_bench.open_shares import OPEN, SHARES, Scored
from offmap_bench.table import Table
from offmap_bench.tables.decision_rules import sub_open_setting
from offmap_bench.tables.open_intents import COMPARED

HELD_OUT = 0.1
SPLITS, TESTED = 4, 0.3
# Two of its five known classes play the known ones; none of the two can play an open one.
TOO_FEW = "StackOverflow 25 %"


@dataclass(frozen=True)
class Problem:
    """Training rows of classes that play the known ones, and test rows of all classes.

    Args:
        X: Training rows.
        y: Their codes.
        tested: The test rows, scored by the nearest training row.
    """

    X: NDArray[Any]
    y: NDArray[np.int64]
    tested: Scored


def nearest(X: NDArray[Any], y: NDArray[np.int64], rows: NDArray[Any], truth: NDArray[np.int64]) -> Scored:
    """Scores rows by the cosine with the nearest training row, and labels them like it."""
    cosines = rows @ X.T
    return Scored(-cosines.max(axis=1).astype(np.float64), y[cosines.argmax(axis=1)], truth)


@lru_cache(maxsize=1)
def problem(title: str, seed: int) -> Problem:
    """Lets a random half of the known classes of a setting play the open ones."""
    X, y, X_test, y_test, known = sub_open_setting(title, seed)
    codes = np.searchsorted(known, y)
    truth = np.where(np.isin(y_test, known), np.searchsorted(known, y_test), OPEN)
    return Problem(X, codes, nearest(X, codes, X_test, truth))


@dataclass(frozen=True)
class InHindsight:
    """The threshold that is best on the test rows."""

    def __call__(self, given: Problem, rng: np.random.Generator) -> float:
        """Returns the threshold."""
        thresholds = given.tested.thresholds()
        return float(thresholds[given.tested.f1(thresholds).argmax()])


@dataclass(frozen=True)
class FalseAlarms:
    """The threshold that rejects a share of held-out rows of the known classes.

    Args:
        share: That share.
    """

    share: float

    def __call__(self, given: Problem, rng: np.random.Generator) -> float:
        """Returns the threshold."""
        held_out = rng.random(len(given.y)) < HELD_OUT
        rows = nearest(given.X[~held_out], given.y[~held_out], given.X[held_out], given.y[held_out])
        return float(np.quantile(rows.novelty, 1 - self.share))


@dataclass(frozen=True)
class SubOpen:
    """The threshold with the highest F1 when some of the known classes play the open ones.

    Args:
        share: Share of the known classes that do.
    """

    share: float

    def __call__(self, given: Problem, rng: np.random.Generator) -> float:
        """Returns the threshold."""
        found = [self._split(given, rng) for _ in range(SPLITS)]
        grid = np.unique(np.concatenate([each.thresholds() for each in found]))
        return float(grid[np.mean([each.f1(grid) for each in found], axis=0).argmax()])

    def _split(self, given: Problem, rng: np.random.Generator) -> Scored:
        order = rng.permutation(given.y.max() + 1)
        known = np.sort(order[min(max(1, round(self.share * len(order))), len(order) - 2) :])
        codes = np.where(np.isin(given.y, known), np.searchsorted(known, given.y), OPEN)
        held_out = rng.random(len(codes)) < TESTED
        train = (codes != OPEN) & ~held_out
        return nearest(given.X[train], codes[train], given.X[held_out], codes[held_out])


Rule = Callable[[Problem, np.random.Generator], float]


def measure(method: Rule, title: str, seed: int) -> dict[str, float]:
    """Chooses the threshold on the classes that play the known ones, and scores the answers of the test rows."""
    given = problem(title, seed)
    threshold = method(given, np.random.default_rng(seed))
    return {
        "f1": float(given.tested.f1(np.array([threshold]))[0]),
        "false alarms": given.tested.false_alarms(threshold),
    }


THRESHOLD = Table(
    name="open-intents-threshold",
    source="No paper: the threshold of an open-set classifier",
    caption="F1 of the nearest-neighbour score by how the threshold is chosen; half of the known classes are "
    "treated as unknown.",
    rows={
        "best in hindsight": InHindsight(),
        **{f"{share:.0%} of held-out known rows": FalseAlarms(share) for share in (0.05, 0.08, 0.1, 0.12, 0.15)},
        "sub-open classes, a half": SubOpen(0.5),
        "sub-open classes, a quarter": SubOpen(0.25),
        "sub-open classes, a tenth": SubOpen(0.1),
    },
    columns=tuple(title for title in COMPARED.columns if title != TOO_FEW),
    metrics=("f1", "false alarms"),
    measure=measure,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    needs=COMPARED.needs,
    notes="Only training rows of the known classes of each setting are used, as in decision-rules; StackOverflow 25 % "
    "has too few classes. The score is the cosine with the nearest training row, on frozen all-MiniLM-L6-v2 "
    "embeddings. The F1 is the mean over shares of open rows of "
    f"{', '.join(f'{share:.0%}' for share in SHARES)}: open rows are weighted. “Sub-open classes” lets a part of the "
    f"classes that are left play the open ones once more, {SPLITS} times, and takes the threshold with the highest F1 "
    f"on {TESTED:.0%} of the rows. {HELD_OUT:.0%} of the rows are held out to set a rate.",
    higher_is_better={"f1": True},
    formats={"f1": ".2%", "false alarms": ".2%"},
    average=True,
)
TABLES = (THRESHOLD,)
