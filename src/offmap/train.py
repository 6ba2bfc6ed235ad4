"""The training loop that all methods share.

A step takes a batch, updates the networks and returns the named terms of its loss. ``train`` applies a step to every
batch of every epoch. One network: ``train(descend(optimizer, objective), batches, ...)``. Two networks that alternate
on each batch: ``lambda batch: critic(batch) | encoder(batch)``. Two stages: two calls of ``train``.
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
    """Training stopped because a loss was not finite; the message names the term and the epoch."""


class Sampler(Protocol):
    """An iterable of batches with a length; each iteration is one epoch."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Batch]: ...


@dataclass(frozen=True)
class Batches:
    """Batches of tensors in memory, in a new random order for each epoch.

    The rows are distributed evenly, so that no batch has a single row, for which batch normalisation is undefined: with
    ``size=2`` and an odd number of rows, one batch has three. ``size=1`` is respected.

    Args:
        tensors: Tensors of equal length; a batch holds the same rows of each.
        size: Largest number of rows per batch.

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
    """Returns the step that minimises the sum of the objective's terms with ``optimizer``.

    Args:
        optimizer: Optimiser of the parameters to update.
        objective: Maps a batch to the named scalar terms of the loss.
        clip: Largest norm of the gradient; larger gradients are scaled down to it. None does not clip.
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


def check_history(history: Any) -> None:
    """Raises a ``ValueError`` unless ``history`` is what ``train`` returns: numbers by the names of terms.

    Example:
        >>> check_history({"loss": [2.5, 1.0]})
        >>> check_history({"loss": "low"})
        Traceback (most recent call last):
        ValueError: history_ must hold a list of numbers per term
    """
    values = history.values() if isinstance(history, dict) else [None]
    known = isinstance(history, dict) and all(isinstance(name, str) for name in history)
    if not known or not all(isinstance(each, list) and all(type(v) in (int, float) for v in each) for each in values):
        raise ValueError("history_ must hold a list of numbers per term")


@dataclass
class _Progress:
    """The state of a run apart from its networks and optimisers."""

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
    """Applies ``step`` to every batch of every epoch and returns the mean of each term per epoch.

    The networks end in evaluation mode.

    Args:
        step: Takes a batch, updates the networks and returns the named terms of the loss.
        batches: Iterated once per epoch.
        epochs: Largest number of epochs.
        state: The networks and optimisers by name: they are put into training mode, checkpointed and restored.
        validate: Returns a number to minimise, such as a held-out loss. The networks end with the weights of the epoch
            where it was lowest. Without it they end with the last weights.
        patience: Number of epochs without a new minimum of ``validate`` after which training stops.
        checkpoint: Where to save the state after each epoch, and to resume from.
        label: Text beside the progress bar.

    Raises:
        TrainingError: A term, or the value of ``validate``, is not finite.
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
                checkpoint.save({"progress": asdict(progress), "best": best}, state)
            shown.advance(note=" ".join(f"{name} {value:.4g}" for name, value in means.items()))
    _restore(modules, best)
    if checkpoint is not None:
        checkpoint.remove()
    return progress.history


def _exhausted(progress: _Progress, patience: int | None) -> bool:
    return patience is not None and progress.stale >= patience


def _epoch(step: Step, batches: Sampler, modules: Mapping[str, nn.Module], epoch: int) -> dict[str, float]:
    """Runs one epoch and returns the mean of each term."""
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
            f"the term {name!r} became {value} in epoch {epoch}; try a smaller lr, and check the data for outliers"
        )


def _validated(validate: Callable[[], float], modules: Mapping[str, nn.Module], epoch: int) -> float:
    for module in modules.values():
        module.eval()
    with torch.no_grad():
        value = float(validate())
    _require_finite("validation", value, epoch)
    return value


def _keep_best(value: float, progress: _Progress, modules: Mapping[str, nn.Module], best: Any) -> Any:
    """Returns the best weights: a copy of the current ones if ``value`` is the lowest so far, else ``best``."""
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
    """Returns the progress of the checkpointed run and its best weights, or a new start."""
    record = None if checkpoint is None else checkpoint.resume(state)
    return (_Progress(), None) if record is None else (_Progress(**record["progress"]), record["best"])
