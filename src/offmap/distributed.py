"""Training on several processes, started by ``torchrun``: who takes which rows, and how the processes agree.

Every process runs the same program with the same seed. Inside ``together``, the training loop gives each of them a
slice of every batch and averages the gradients over rows before each step, so that all hold the same weights.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

# Imported before a group exists, since its functions take the group of that moment as default arguments. Optimizers
# import it too: a group that it holds still has threads when the interpreter ends, which can abort the process.
import torch.distributed.nn.functional
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous

from offmap.errors import WorkFailed, reason_of

# How long a process waits for the others, which may be reading their files.
_PATIENCE = timedelta(minutes=30)
# How long it takes at most to find out which process has stopped.
_ROLL_CALL = timedelta(seconds=3)
Terms = dict[str, Tensor]


@dataclass(frozen=True)
class Processes:
    """The processes that train one model.

    Args:
        rank: The number of this process, from 0.
        count: How many processes there are.
        store: Where they leave notes for one another.
    """

    rank: int = 0
    count: int = 1
    store: Any = None

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes files and prints."""
        return self.rank == 0

    @property
    def alone(self) -> bool:
        """Whether there is no other process."""
        return self.count == 1

    def averaged(self, parameters: Sequence[Tensor], terms: Terms, rows: int) -> Terms:
        """Replaces gradients by their mean over the rows of all processes; returns the means of the terms.

        Args:
            parameters: What the gradients are of; each process must have a gradient of the same ones.
            terms: The terms of the loss, each a mean over the rows of this process.
            rows: Number of rows of this process.
        """
        if self.alone:
            return terms
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        dense = [gradient for gradient in gradients if not gradient.is_sparse]
        values = [*dense, *terms.values(), torch.ones((), device=dense[0].device if dense else None)]
        sums = torch.cat([rows * value.detach().reshape(-1).to(values[-1].device) for value in values])
        self._sum(sums)
        means = (sums[:-1] / sums[-1]).split([value.numel() for value in values[:-1]])
        for gradient, mean in zip(dense, means, strict=False):
            gradient.copy_(mean.view_as(gradient))
        for gradient in gradients:
            if gradient.is_sparse:
                # A process has gradients of the entities in its own rows; the sum joins them.
                self._sum(gradient.mul_(rows / float(sums[-1])))
        return dict(zip(terms, (mean.reshape(()) for mean in means[len(dense) :]), strict=True))

    def agreed(self, value: float) -> float:
        """The value of the first process, for decisions that all must take alike."""
        if self.alone:
            return value
        number = torch.tensor(value, dtype=torch.float64)
        with self._connected():
            dist.broadcast(number, src=0)
        return float(number)

    def synchronise(self, modules: Iterable[nn.Module]) -> None:
        """Gives all processes the weights and buffers of the first."""
        if self.alone:
            return
        with self._connected():
            for tensor in (tensor for module in modules for tensor in module.state_dict().values()):
                dist.broadcast(tensor, src=0)

    def average_statistics(self, modules: Iterable[nn.Module]) -> None:
        """Averages the running statistics of batch normalisation, which each process measures on its own rows."""
        if self.alone:
            return
        norms = [part for module in modules for part in module.modules() if isinstance(part, _BATCH_NORMS)]
        for norm in norms:
            for statistic in (norm.running_mean, norm.running_var):
                if statistic is not None:
                    self._sum(statistic)
                    statistic /= self.count

    def scored(self, score: Callable[[NDArray[np.intp]], Sequence[Any]], count: int) -> tuple[NDArray[Any], ...]:
        """Scores rows, each process a share of them, and joins the results by row.

        Args:
            score: Maps the positions of some rows to arrays with one entry per row.
            count: Number of rows.
        """
        if count < self.count or self.alone:
            return tuple(score(np.arange(count)))
        own = np.array_split(np.arange(count), self.count)[self.rank]
        found = tuple(score(own))
        parts = self.gather((own, found))
        joined = tuple(np.empty((count, *part.shape[1:]), part.dtype) for part in found)
        for rows, arrays in parts:
            for whole, part in zip(joined, arrays, strict=True):
                whole[rows] = part
        return joined

    def gather(self, value: Any) -> list[Any]:
        """The values of all processes, by rank."""
        if self.alone:
            return [value]
        found: list[Any] = [None] * self.count
        with self._connected():
            dist.all_gather_object(found, value)
        return found

    def own_draws(self, epoch: int) -> Callable[[], AbstractContextManager[None]]:
        """Returns a context in which this process draws random numbers of its own, whatever the others draw.

        Noise is drawn for the rows of a slice, so that processes draw different amounts; the order of the rows, drawn
        outside, must stay that of all processes. The numbers follow from the seed and the epoch.
        """
        if self.alone:
            return nullcontext
        generator = torch.Generator().manual_seed((torch.initial_seed() + self.rank + 1 + self.count * epoch) % 2**63)
        return partial(_drawing_from, generator)

    def _sum(self, values: Tensor) -> None:
        with self._connected():
            dist.all_reduce(values)

    @contextmanager
    def _connected(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            raise WorkFailed(f"training stopped: {self._missing()}") from error

    def _missing(self) -> str:
        """Which processes do not answer, and why if they said so; the first may keep the list and be gone with it."""
        try:
            return "; ".join(filter(None, map(self._silence_of, range(self.count)))) or "the connection was lost"
        except RuntimeError:
            return f"process 0 of {self.count} does not answer"

    def _silence_of(self, rank: int) -> str:
        if self.store.check([f"failed/{rank}"]):
            return f"process {rank} of {self.count} failed: {self.store.get(f'failed/{rank}').decode()}"
        self.store.set(f"alive/{self.rank}", "")
        try:
            self.store.wait([f"alive/{rank}"], _ROLL_CALL)
        except RuntimeError:
            return f"process {rank} of {self.count} does not answer; it was killed or lost its connection"
        return ""


ALONE = Processes()
_current: ContextVar[Processes] = ContextVar("processes", default=ALONE)
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def current() -> Processes:
    """The processes that train together here; one alone outside of ``together``."""
    return _current.get()


@contextmanager
def together(address: str = "env://") -> Iterator[Processes]:
    """Lets every fit inside the block train on all the processes that run it; ``torchrun`` starts them.

    Each process must do the same, with the same data and the same integer ``random_state``. Files are for the first
    process to write. A program that was started alone trains alone.

    Args:
        address: Where the processes meet, a URL for ``torch.distributed``; by default what ``torchrun`` says.

    Example:
        >>> with together() as processes:
        ...     processes.first
        True
    """
    if address == "env://" and ("RANK" not in os.environ or os.environ.get("WORLD_SIZE", "1") == "1"):
        yield ALONE
        return
    processes = _met(address)
    token = _current.set(processes)
    try:
        yield processes
    except BaseException as error:
        with suppress(RuntimeError):
            processes.store.set(f"failed/{processes.rank}", reason_of(error))
        raise
    finally:
        _current.reset(token)
        dist.destroy_process_group()


def _met(address: str) -> Processes:
    """Waits for the other processes and connects to them."""
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    backend = "cpu:gloo,cuda:nccl" if gpu else "gloo"
    try:
        store, rank, count = next(iter(rendezvous(address)))
        dist.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=_PATIENCE)
        # One that fails at once must not leave while another is still connecting: that one could not say why.
        store.set(f"met/{rank}", "")
        store.wait([f"met/{other}" for other in range(count)], _PATIENCE)
    except RuntimeError as error:
        raise WorkFailed(f"cannot connect to the other processes: {reason_of(error)}") from error
    return Processes(rank, count, store)


@contextmanager
def _drawing_from(generator: torch.Generator) -> Iterator[None]:
    """Lends the state of ``generator`` to torch's global one, which layers draw from."""
    common = torch.get_rng_state()
    torch.set_rng_state(generator.get_state())
    try:
        yield
    finally:
        generator.set_state(torch.get_rng_state())
        torch.set_rng_state(common)
