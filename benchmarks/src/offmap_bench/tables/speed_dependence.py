"""Speed of the estimators: KSG beside scikit-learn, networks beside a plain loop, and sums of many terms."""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import digamma
from sklearn.feature_selection import mutual_info_regression
from sklearn.neighbors import KDTree
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from offmap.dependence import InfoNCE, TotalCorrelation, ksg
from offmap.nets import mlp
from offmap.random_state import local_seed
from offmap.train import Batches, descend, train
from offmap_bench.table import Table
from offmap_bench.tables.speed import SOURCE, take_turns

Array = NDArray[np.float64]
Runners = Mapping[str, Callable[[], object]]


def compare(runners: Runners, turns: int) -> dict[str, float]:
    """Returns the median seconds of two runners that take turns, and how many times as fast the first is."""
    ours, theirs = take_turns(runners, turns).values()
    return {
        "ours": statistics.median(ours),
        "theirs": statistics.median(theirs),
        "times as fast": statistics.median(slow / fast for fast, slow in zip(ours, theirs, strict=True)),
    }


def ksg_by_sklearn(x: Array, y: Array, n_neighbors: int = 3) -> float:
    """Computes KSG as it is commonly written (also in NPEET): scikit-learn's trees find and count neighbours."""
    together = np.hstack([x, y])
    radius = KDTree(together, metric="chebyshev").query(together, n_neighbors + 1)[0][:, -1]
    counts = [KDTree(part, metric="chebyshev").query_radius(part, radius - 1e-15, count_only=True) for part in (x, y)]
    return float(digamma(n_neighbors) + digamma(len(x)) - np.mean(digamma(counts[0]) + digamma(counts[1])))


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Two correlated variables, and two ways to estimate their mutual information."""

    width: int
    rows: int = 10_000
    single: bool = False
    turns: int = 3

    def runners(self, seed: int) -> dict[str, Callable[[], float]]:
        """Returns the two runners, ours first."""
        x, noise = np.random.default_rng(seed).normal(size=(2, self.rows, self.width))
        y = 0.7 * x + 0.7 * noise
        if not self.single:
            return {"ours": lambda: ksg(x, y), "theirs": lambda: ksg_by_sklearn(x, y)}
        target = y.mean(1)
        return {
            "ours": lambda: float(np.mean([ksg(column, target) for column in x.T])),
            "theirs": lambda: float(np.mean(mutual_info_regression(x, target, random_state=seed))),
        }


def measure_neighbours(work: Neighbours, column: str, seed: int) -> dict[str, float]:
    """Measures the seconds of both, and the difference of their estimates."""
    runners = work.runners(seed)
    values = [runner() for runner in runners.values()]
    return compare(runners, work.turns) | {"apart, nats": abs(values[0] - values[1])}


class PlainInfoNCE(nn.Module):
    """InfoNCE as it is commonly written: every pair of the batch is concatenated and passes through all layers."""

    def __init__(self, width: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.network = mlp([2 * width, *hidden, 1])

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns minus the bound."""
        rows = len(x)
        pairs = torch.cat([x.repeat_interleave(rows, 0), y.repeat(rows, 1)], dim=1)
        scores = self.network(pairs).reshape(rows, rows)
        return (scores.logsumexp(1) - scores.diagonal()).mean() - float(np.log(rows))


@dataclass(frozen=True, kw_only=True)
class Learning:
    """A tree over four variables with InfoNCE, trained for some steps by our loop and by a plain one."""

    width: int = 20
    hidden: tuple[int, ...] = (64,)
    batch_size: int = 64
    steps: int = 100
    turns: int = 5

    def runners(self) -> dict[str, Callable[[], object]]:
        """Returns the two runners, ours first."""
        groups = tuple(torch.randn(self.steps * self.batch_size, self.width) for _ in range(4))
        return {"ours": self._ours(groups), "theirs": self._theirs(groups)}

    def _ours(self, groups: tuple[Tensor, ...]) -> Callable[[], object]:
        model = TotalCorrelation([self.width] * 4, estimator="infonce", hidden=self.hidden)
        optimizer = Adam(model.parameters())
        step, batches = descend(optimizer, lambda batch: {"loss": model.loss(batch)}), Batches(groups, self.batch_size)
        state: dict[str, nn.Module | Optimizer] = {"model": model, "optimizer": optimizer}
        return lambda: train(step, batches, epochs=1, state=state)

    def _theirs(self, groups: tuple[Tensor, ...]) -> Callable[[], object]:
        models = [PlainInfoNCE(width, self.hidden) for width in (2 * self.width, self.width, self.width)]
        optimizer = Adam(nn.ModuleList(models).parameters())

        def run() -> None:
            for a, b, c, d in zip(*(group.split(self.batch_size) for group in groups), strict=True):
                optimizer.zero_grad()
                whole = models[0].loss(torch.cat([a, b], 1), torch.cat([c, d], 1))
                (whole + models[1].loss(a, b) + models[2].loss(c, d)).backward()
                optimizer.step()

        return run


def measure_learning(work: Learning, column: str, seed: int) -> dict[str, float]:
    """Measures steps per second of both loops."""
    with local_seed(seed):
        found = compare(work.runners(), work.turns)
    return found | {name: work.steps / found[name] for name in ("ours", "theirs")}


@dataclass(frozen=True, kw_only=True)
class Growth:
    """One training step of InfoNCE over many variables: the terms of a tree or a line, or all pairs."""

    graph: str
    width: int = 8
    hidden: tuple[int, ...] = (32,)
    batch_size: int = 64
    turns: int = 5

    def step(self, variables: int) -> Callable[[], object]:
        """Returns a step: forward, backward and update."""
        groups = torch.randn(variables, self.batch_size, self.width)
        model, inputs = self._full(groups) if self.graph == "full" else self._sum(groups)
        descent = descend(Adam(model.parameters()), lambda batch: {"loss": model.loss(*inputs)})
        return lambda: descent(())

    def _full(self, groups: Tensor) -> tuple[Any, tuple[Any, ...]]:
        pairs = torch.combinations(torch.arange(len(groups))).T
        widths = [self.width] * pairs.shape[1]
        return InfoNCE(widths, widths, hidden=self.hidden), (groups[pairs[0]], groups[pairs[1]])

    def _sum(self, groups: Tensor) -> tuple[Any, tuple[Any, ...]]:
        widths = [self.width] * len(groups)
        model = TotalCorrelation(widths, decomposition=self.graph, estimator="infonce", hidden=self.hidden)
        return model, (list(groups),)


def measure_growth(work: Growth, column: str, seed: int) -> dict[str, float]:
    """Measures the milliseconds of a step."""
    variables = int(column.split()[0])
    with local_seed(seed):
        seconds = take_turns({"step": work.step(variables)}, work.turns)["step"]
    return {"ms a step": 1000 * statistics.median(seconds)}


NEIGHBOURS = Table(
    name="speed-ksg",
    source=SOURCE,
    caption="Seconds of KSG on 10,000 rows: ours, and scikit-learn's.",
    rows={
        "20 columns, each against a target": Neighbours(width=20, single=True),
        **{f"{width} columns against {width}": Neighbours(width=width) for width in (1, 2, 5, 10, 20)},
    },
    columns=("10,000 rows",),
    metrics=("ours", "theirs", "times as fast", "apart, nats"),
    measure=measure_neighbours,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"ours": ".2f", "theirs": ".2f", "times as fast": ".1f", "apart, nats": ".4f"},
    notes="Theirs is `mutual_info_regression` in the first row, which takes columns one by one; elsewhere it is "
    "KSG with scikit-learn's trees, as in NPEET. They take turns in one run; medians.",
)
LEARNING = Table(
    name="speed-information",
    source=SOURCE,
    caption="Training steps per second of a tree over four variables of 20 columns with InfoNCE.",
    rows={f"batches of {size}": Learning(batch_size=size) for size in (64, 128)},
    columns=("one hidden layer of 64",),
    metrics=("ours", "theirs", "times as fast"),
    measure=measure_learning,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"ours": ",.0f", "theirs": ",.0f", "times as fast": ".1f"},
    notes="Ours trains the three terms as one stack in the toolkit's loop, with rows in random order; theirs is a loop "
    "over three networks, each on all concatenated pairs of the batch, with rows in order. They take turns; medians.",
)
GROWTH = Table(
    name="speed-decompositions",
    source=SOURCE,
    caption="Milliseconds of a training step with InfoNCE as the number of variables grows.",
    rows={
        "tree": Growth(graph="tree"),
        "line": Growth(graph="line"),
        "all pairs": Growth(graph="full"),
    },
    columns=tuple(f"{variables} variables" for variables in (4, 8, 16, 32)),
    metrics=("ms a step",),
    measure=measure_growth,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"ms a step": ".1f"},
    notes="Variables of 8 columns, 64 rows per step. A tree and a line have one term less than there are variables. "
    "All pairs do not add up to a total correlation, and their number grows with the square of the variables.",
)
TABLES = (NEIGHBOURS, LEARNING, GROWTH)
