"""The training loop that all methods share.

A step takes a batch, updates the networks and returns the named terms of its loss. ``train`` applies a step to every
batch of every epoch. One network: ``train(descend(optimizer, objective), batches, ...)``. Two networks that alternate
on each batch: ``lambda batch: critic(batch) | encoder(batch)``. Two stages: two calls of ``train``. Several processes
(see ``offmap.distributed``): each takes a slice of every batch, and ``descend`` averages the gradients.
"""

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from offmap.batches import Batch, Batches, Sampler, SharedSampler
from offmap.checkpoint import Checkpoint
from offmap.distributed import Processes, current
from offmap.errors import WorkFailed
from offmap.progress import bar
from offmap.threads import one_thread

__all__ = ["Batch", "Batches", "History", "Sampler", "Step", "TrainingError", "check_history", "descend", "train"]

# Weights up to which a network is small; convolutions do more work per weight.
_SMALL, _CONVOLUTIONS = 500_000, (nn.Conv2d, nn.ConvTranspose2d)
Step = Callable[[Batch], dict[str, Tensor]]
History = dict[str, list[float]]


class TrainingError(WorkFailed):
    """Training stopped because a loss was not finite; the message names the term and the epoch."""


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
        detached = {name: term.detach() for name, term in terms.items()}
        means = current().averaged(parameters, detached, rows=len(batch[0]) if batch else 1)
        if clip is not None:
            nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        return means

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

    The networks end in evaluation mode. On several processes all end with the same weights; the first alone writes.

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
    processes = current()
    progress, best = _resumed(checkpoint, state, processes)
    processes.synchronise(modules.values())
    if not processes.alone and isinstance(batches, SharedSampler):
        batches = batches.shared(processes)
    with _threads_for(modules.values()), bar(label, total=epochs) as shown:
        shown.advance(progress.epoch)
        while progress.epoch < epochs and not _exhausted(progress, patience):
            progress.epoch += 1
            means = _epoch(step, batches, modules, progress.epoch)
            if validate is not None:
                means["validation"] = _validated(validate, modules, progress.epoch)
                best = _keep_best(means["validation"], progress, modules, best)
            for name, value in means.items():
                progress.history.setdefault(name, []).append(value)
            if checkpoint is not None and processes.first:
                checkpoint.save({"progress": asdict(progress), "best": best}, state)
            shown.advance(note=" ".join(f"{name} {value:.4g}" for name, value in means.items()))
    _restore(modules, best)
    if checkpoint is not None and processes.first:
        checkpoint.remove()
    return progress.history


def _threads_for(modules: Iterable[nn.Module]) -> AbstractContextManager[None]:
    """Small networks train on one thread: several would wait for one another longer than they work."""
    parts = [part for module in modules for part in module.modules()]
    weights = sum(weight.numel() for part in parts for weight in part.parameters(recurse=False))
    return nullcontext() if weights > _SMALL or any(isinstance(part, _CONVOLUTIONS) for part in parts) else one_thread()


def _exhausted(progress: _Progress, patience: int | None) -> bool:
    return patience is not None and progress.stale >= patience


def _epoch(step: Step, batches: Sampler, modules: Mapping[str, nn.Module], epoch: int) -> dict[str, float]:
    """Runs one epoch and returns the mean of each term."""
    for module in modules.values():
        module.train()
    totals: dict[str, Tensor] = {}
    processes = current()
    own_draws = processes.own_draws(epoch)
    for batch in batches:
        with own_draws():
            terms = step(batch)
        for name, term in terms.items():
            totals[name] = totals[name] + term if name in totals else term
    processes.average_statistics(modules.values())
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
        value = current().agreed(float(validate()))
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


def _resumed(checkpoint: Checkpoint | None, state: Mapping[str, Any], processes: Processes) -> tuple[_Progress, Any]:
    """Returns the progress of the checkpointed run and its best weights, or a new start."""
    record = None if checkpoint is None else checkpoint.resume(state)
    progress, best = (_Progress(), None) if record is None else (_Progress(**record["progress"]), record["best"])
    if processes.agreed(progress.epoch) != progress.epoch:
        raise ValueError("checkpoint must be on a disk that all processes read; they found different states in it")
    return progress, best
