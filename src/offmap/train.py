"""The one training loop: a step maps a batch to named numbers, and ``train`` applies it.

Steps compose. One player: ``train(descend(optimizer, objective), batches, ...)``. Two players in a batch:
``lambda batch: critic(batch) | encoder(batch)``. Two stages: two calls of ``train``.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from offmap.checkpoint import Checkpoint
from offmap.errors import WorkFailed
from offmap.progress import bar

Batch = tuple[Tensor, ...]
Step = Callable[[Batch], dict[str, Tensor]]
History = dict[str, list[float]]


class TrainingError(WorkFailed):
    """Training that cannot go on; the message names the term and the epoch."""


class Sampler(Protocol):
    """What an epoch goes over: so many batches, drawn anew each time."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Batch]: ...


@dataclass(frozen=True)
class Batches:
    """Rows of tensors that are already in memory, in a new random order each time they are iterated.

    The rows are spread evenly, so that no epoch ends with a batch of one row, which batch normalisation cannot take:
    an odd one out joins a batch of ``size`` 2. A ``size`` of 1 is kept.

    Example:
        >>> [len(rows) for (rows,) in Batches((torch.arange(7),), size=3)]
        [3, 2, 2]
    """

    tensors: tuple[Tensor, ...]
    size: int

    def __len__(self) -> int:
        rows = len(self.tensors[0])
        return rows if self.size == 1 else min(math.ceil(rows / self.size), max(rows // 2, 1))

    def __iter__(self) -> Iterator[Batch]:
        order = torch.randperm(len(self.tensors[0]))
        for rows in order.tensor_split(len(self)):
            yield tuple(tensor[rows] for tensor in self.tensors)


def descend(optimizer: Optimizer, objective: Callable[[Batch], dict[str, Tensor]], clip: float | None = None) -> Step:
    """Makes the step that moves ``optimizer`` down the sum of the objective's terms.

    Args:
        optimizer: Holds the parameters that move.
        objective: Maps a batch to named scalar terms.
        clip: Largest norm of the gradient; longer ones are shortened to it.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]

    def step(batch: Batch) -> dict[str, Tensor]:
        optimizer.zero_grad(set_to_none=True)
        terms = objective(batch)
        sum(terms.values(), start=torch.zeros(())).backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        return {name: term.detach() for name, term in terms.items()}

    return step


@dataclass
class _Progress:
    """What changes from epoch to epoch beside the networks and optimisers."""

    epoch: int = 0
    best: float = math.inf
    stale: int = 0
    history: History = field(default_factory=dict)


def train(
    step: Step,
    batches: Sampler,
    *,
    epochs: int,
    state: Mapping[str, nn.Module | Optimizer],
    validate: Callable[[], float] | None = None,
    patience: int | None = None,
    checkpoint: Checkpoint | None = None,
    label: str = "training",
) -> History:
    """Applies ``step`` to every batch of every epoch and returns the mean of each term, epoch by epoch.

    Args:
        step: Maps a batch to named numbers and moves what it trains.
        batches: Iterated once an epoch.
        epochs: How many at the most.
        state: The networks and optimisers at work, by name: put in training mode, checkpointed, restored.
        validate: A number that should fall, such as a held-out loss; the networks end as they were at its best.
        patience: Epochs without a new best after which training stops.
        checkpoint: Where to leave the state after each epoch.
        label: Shown beside the progress bar.
    """
    modules = {name: part for name, part in state.items() if isinstance(part, nn.Module)}
    progress, best = _resumed(checkpoint, state)
    with bar(label, total=epochs) as shown:
        shown.advance(progress.epoch)
        while progress.epoch < epochs and not _exhausted(progress, patience):
            progress.epoch += 1
            means = _epoch(step, batches, modules, progress.epoch)
            if validate is not None:
                means["validation"] = _validated(validate, modules, progress.epoch)
                best = _keep_best(means["validation"], progress, modules, best)
            for name, value in means.items():
                progress.history.setdefault(name, []).append(value)
            if checkpoint is not None:
                checkpoint.leave({"progress": asdict(progress), "best": best}, state)
            shown.advance(note=" ".join(f"{name} {value:.4g}" for name, value in means.items()))
    _restore(modules, best)
    if checkpoint is not None:
        checkpoint.remove()
    return progress.history


def _exhausted(progress: _Progress, patience: int | None) -> bool:
    return patience is not None and progress.stale >= patience


def _epoch(step: Step, batches: Sampler, modules: Mapping[str, nn.Module], epoch: int) -> dict[str, float]:
    """The mean of each term over one pass."""
    for module in modules.values():
        module.train()
    totals: dict[str, Tensor] = {}
    for batch in batches:
        for name, term in step(batch).items():
            totals[name] = totals[name] + term if name in totals else term
    means = {name: float(total) / len(batches) for name, total in totals.items()}
    for name, value in means.items():
        _require_finite(name, value, epoch)
    return means


def _require_finite(name: str, value: float, epoch: int) -> None:
    if not math.isfinite(value):
        raise TrainingError(
            f"the term {name!r} became {value} in epoch {epoch}; a smaller lr, or a look at the data, may help"
        )


def _validated(validate: Callable[[], float], modules: Mapping[str, nn.Module], epoch: int) -> float:
    for module in modules.values():
        module.eval()
    with torch.no_grad():
        value = float(validate())
    _require_finite("validation", value, epoch)
    return value


def _keep_best(value: float, progress: _Progress, modules: Mapping[str, nn.Module], best: Any) -> Any:
    """The state to end with: a copy of the present one if ``value`` is the lowest so far."""
    if value >= progress.best:
        progress.stale += 1
        return best
    progress.best, progress.stale = value, 0
    return {name: copy.deepcopy(module.state_dict()) for name, module in modules.items()}


def _restore(modules: Mapping[str, nn.Module], best: Any) -> None:
    for name, module in modules.items():
        if best is not None:
            module.load_state_dict(best[name])
        module.eval()


def _resumed(checkpoint: Checkpoint | None, state: Mapping[str, Any]) -> tuple[_Progress, Any]:
    """How far the run has come, and its best state so far."""
    record = None if checkpoint is None else checkpoint.resume(state)
    return (_Progress(), None) if record is None else (_Progress(**record["progress"]), record["best"])
