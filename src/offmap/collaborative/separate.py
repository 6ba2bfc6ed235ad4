"""Networks of one architecture, each with weights of its own, that are trained and applied at the same time."""

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.optim import AdamW

from offmap.collaborative.observations import Observations
from offmap.train import Batch, descend, train

# Entities that train at once, and rows of an entity that are scored at once.
_GROUP, _UNIT = 16, 64
Objective = Callable[[Callable[[Tensor], Tensor], Tensor, Tensor], Tensor]


class NetworkStack:
    """Applies copies of a network with different weights, each to rows of its own.

    Args:
        template: The network; its own weights are not used.
    """

    def __init__(self, template: nn.Module) -> None:
        # ``functional_call`` swaps the weights of the module it is given, so each stack has a module of its own: two
        # threads that score one model must not swap each other's. The tensors are shared, not copied.
        shared = {id(tensor): tensor for tensor in (*template.parameters(), *template.buffers())}
        self.template = copy.deepcopy(template, shared).eval()
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
        """The output for each row with the weights at its place; rows of one place are grouped in units of one size."""
        device = places.device
        order = torch.argsort(places, stable=True)
        ranked = places[order]
        _, counts = torch.unique_consecutive(ranked, return_counts=True)
        rank = torch.arange(len(ranked), device=device) - torch.repeat_interleave(counts.cumsum(0) - counts, counts)
        unit = (rank % _UNIT == 0).long().cumsum(0) - 1
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
    """The weights of networks, one row per network."""
    return torch.stack([torch.cat([w.detach().flatten() for w in network.parameters()]) for network in networks])


@dataclass(frozen=True)
class OwnAndPopulation:
    """Batches for a group of entities: some own rows of each, and as many rows of all entities."""

    own: tuple[Tensor, ...]
    population: Tensor
    size: int
    steps: int

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Batch]:
        for _ in range(self.steps):
            picked = [rows[_drawn(rows, self.size)] for rows in self.own]
            others = self.population[_drawn(self.population, len(self.own), self.size)]
            yield torch.stack(picked), others


def _drawn(values: Tensor, *shape: int) -> Tensor:
    """Places among ``values``, drawn with replacement."""
    return torch.randint(len(values), shape, device=values.device)


def fit_separately(
    stack: NetworkStack,
    weights: Tensor,
    observed: Observations,
    objective: Objective,
    *,
    population: Tensor,
    epochs: int,
    size: int,
    lr: float,
    weight_decay: float,
) -> Tensor:
    """Trains the networks of all entities, a group at a time, and returns their weights.

    Args:
        stack: Applies them.
        weights: First weights, one row per entity.
        observed: Rows of the entities, and of the population.
        objective: Maps the networks of a group, own rows and rows of all entities (entity, row, …) to a loss.
        population: Rows of ``observed.X`` that stand for all entities.
        epochs: Passes over the rows of an entity of mean size.
        size: Own rows of each entity per step.
        lr: Step size of AdamW.
        weight_decay: Its weight decay.
    """
    own = observed.rows_by_entity()
    steps = max(1, round(len(observed) / len(own) / size))

    def fit_group(first: int) -> Tensor:
        group = nn.ParameterList([weights[first : first + _GROUP].clone()])

        def terms(batch: Batch) -> dict[str, Tensor]:
            mine, rest = (observed.X[index] for index in batch)
            return {"separate": objective(lambda rows: stack(group[0], rows), mine, rest)}

        optimizer = AdamW(group.parameters(), lr=lr, weight_decay=weight_decay)
        batches = OwnAndPopulation(own[first : first + _GROUP], population, size, steps)
        train(
            descend(optimizer, terms),
            batches,
            epochs=epochs,
            state={"group": group, "optimizer": optimizer},
            label="separate networks",
        )
        return group[0].detach()

    stack.template.train()
    try:
        return torch.cat([fit_group(first) for first in range(0, len(own), _GROUP)])
    finally:
        # However training ends: a network that still drops units would give random scores.
        stack.template.eval()
