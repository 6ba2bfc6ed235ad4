"""Networks of one form, each with weights of its own, computed as one: every task learns alone, but not in a loop."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.optim import AdamW

from offmap.collaborative.exposures import Exposures
from offmap.train import Batch, descend, train

# Tasks that train at once, and rows of a task that are scored at once.
_GROUP, _UNIT = 16, 64
Objective = Callable[[Callable[[Tensor], Tensor], Tensor, Tensor], Tensor]


class Stack:
    """Applies copies of a network with different weights, each to rows of its own.

    Args:
        template: The network; its weights do not matter.
    """

    def __init__(self, template: nn.Module) -> None:
        self.template = template
        self.shapes = {name: tuple(weight.shape) for name, weight in template.named_parameters()}
        self.size = sum(prod(shape) for shape in self.shapes.values())

    def __call__(self, weights: Tensor, X: Tensor) -> Tensor:
        """Applies the network with the weights in each row of ``weights`` to the rows ``X[i]``."""
        pieces = weights.split([prod(shape) for shape in self.shapes.values()], dim=1)
        named = {
            name: piece.view(len(weights), *shape)
            for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)
        }
        buffers = dict(self.template.named_buffers())
        return vmap(lambda own, rows: functional_call(self.template, (own, buffers), (rows,)), randomness="different")(
            named, X
        )

    def of_all(self, weights: Tensor, X: Tensor) -> Tensor:
        """The output for every row with every row of weights, as a matrix."""
        groups = [self(part, X.expand(len(part), *X.shape)) for part in weights.split(_GROUP)]
        return torch.cat(groups).T

    def of_pairs(self, weights: Tensor, X: Tensor, places: Tensor) -> Tensor:
        """The output for each row with the weights at its place: rows of a place go together, in units of one size."""
        order = torch.argsort(places, stable=True)
        ranked = places[order]
        _, counts = torch.unique_consecutive(ranked, return_counts=True)
        rank = torch.arange(len(ranked)) - torch.repeat_interleave(counts.cumsum(0) - counts, counts)
        unit = torch.cat([torch.zeros(1, dtype=torch.int64), ((rank % _UNIT == 0)[1:]).long().cumsum(0)])
        found = X.new_empty(len(X))
        owner = ranked[rank % _UNIT == 0]
        for first in range(0, len(owner), _GROUP):
            inside = (unit >= first) & (unit < first + _GROUP)
            rows = X.new_zeros(_GROUP, _UNIT, *X.shape[1:])
            at = (unit[inside] - first, rank[inside] % _UNIT)
            rows[at] = X[order[inside]]
            own = owner[first : first + _GROUP]
            filled = torch.cat([own, own.new_zeros(_GROUP - len(own))])
            found[order[inside]] = self(weights[filled], rows)[at]
        return found


def flat_weights(networks: Iterable[nn.Module]) -> Tensor:
    """The weights of networks, one row each."""
    return torch.stack([torch.cat([w.detach().flatten() for w in network.parameters()]) for network in networks])


@dataclass(frozen=True)
class OwnAndPopulation:
    """Batches of rows for each task of a group: some of its own exposures, and as many of the population."""

    own: tuple[Tensor, ...]
    population: Tensor
    size: int
    steps: int

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Batch]:
        for _ in range(self.steps):
            picked = [rows[torch.randint(len(rows), (self.size,))] for rows in self.own]
            others = self.population[torch.randint(len(self.population), (len(self.own), self.size))]
            yield torch.stack(picked), others


def fit_apart(
    stack: Stack,
    weights: Tensor,
    shown: Exposures,
    objective: Objective,
    *,
    population: Tensor,
    epochs: int,
    size: int,
    lr: float,
    weight_decay: float,
) -> Tensor:
    """Trains the networks of all tasks, a group at a time, and returns their weights.

    Args:
        stack: Applies them.
        weights: First weights, a row each task.
        shown: Exposures.
        objective: Maps the networks of a group, own rows and population rows (task, row, …) to a loss.
        population: Rows of the population.
        epochs: Passes over the exposures of a task of mean size.
        size: Own rows of each task a step.
        lr: Step size of AdamW.
        weight_decay: Its weight decay.
    """
    order = torch.argsort(shown.tasks, stable=True)
    own = shown.index[order].split(shown.counts.tolist())
    steps = max(1, round(len(shown) / len(own) / size))

    def fit_group(first: int) -> Tensor:
        group = nn.ParameterList([weights[first : first + _GROUP].clone()])

        def terms(batch: Batch) -> dict[str, Tensor]:
            mine, rest = (shown.X[index] for index in batch)
            return {"apart": objective(lambda rows: stack(group[0], rows), mine, rest)}

        optimizer = AdamW(group.parameters(), lr=lr, weight_decay=weight_decay)
        batches = OwnAndPopulation(tuple(own[first : first + _GROUP]), population, size, steps)
        train(
            descend(optimizer, terms),
            batches,
            epochs=epochs,
            state={"group": group, "optimizer": optimizer},
            label="tasks apart",
        )
        return group[0].detach()

    stack.template.train()
    try:
        return torch.cat([fit_group(first) for first in range(0, len(own), _GROUP)])
    finally:
        # However training ends: scores of a network that drops units at random would be random.
        stack.template.eval()
