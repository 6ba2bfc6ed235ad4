"""One network for all tasks, trained on own exposures against the population."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.optim import AdamW, Optimizer, SparseAdam

from offmap.collaborative.exposures import Exposures
from offmap.collaborative.heads import RatioNetwork
from offmap.random_state import local_seed
from offmap.train import Batch, Batches, History, descend, train

Loss = Callable[[Tensor, Tensor], Tensor]
Terms = Callable[[Batch], dict[str, Tensor]]
# Pace of embeddings that start from nothing: they move only in batches that show their task.
PACE = 10.0


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long and how fast to train.

    Args:
        epochs: Passes over the exposures at the most.
        batch_size: Exposures a step.
        lr: Step size of AdamW.
        weight_decay: Weight decay of the networks.
        patience: Epochs without a lower loss on the validation exposures after which training stops.
        validation: Share of the exposures that ``patience`` looks at.
    """

    epochs: int
    batch_size: int
    lr: float
    weight_decay: float
    patience: int | None
    validation: float

    @classmethod
    def of(cls, detector: Any) -> "Schedule":
        """The schedule that the parameters of a detector describe."""
        return cls(**{name: getattr(detector, name) for name in cls.__dataclass_fields__})

    def split(self, shown: Exposures) -> tuple[Exposures, Exposures]:
        """Exposures to train on, and those that ``patience`` looks at."""
        return shown.split(self.validation) if self.patience is not None else (shown, shown.at(shown.tasks < 0))


class Together(Optimizer):
    """Several optimisers that step as one; each keeps its own parameters.

    Embeddings move by ``SparseAdam``, which touches only the tasks of a batch: a step costs the same however many tasks
    there are.
    """

    def __init__(self, *parts: Optimizer) -> None:
        self.parts = parts
        super().__init__([group for part in parts for group in part.param_groups], {})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none)

    def step(self, closure: Any = None) -> None:  # type: ignore[override] # no closure is ever given
        """One step of each."""
        for part in self.parts:
            part.step()


def optimizer_of(network: nn.Module, vectors: nn.Embedding | None, schedule: Schedule, pace: float = 1.0) -> Optimizer:
    """Moves a network, and embeddings if there are some that may move, at ``pace`` times its step size."""
    dense = AdamW(network.parameters(), lr=schedule.lr, weight_decay=schedule.weight_decay)
    if vectors is None or not vectors.weight.requires_grad:
        return dense
    return Together(dense, SparseAdam([vectors.weight], lr=pace * schedule.lr))


def logistic(own: Tensor, population: Tensor) -> Tensor:
    r"""The logistic loss whose optimum is the log ratio of own exposures to the population.

    $$\mathbb{E}_{q} \log(1 + e^{-f(x)}) + \mathbb{E}_{p} \log(1 + e^{f(\tilde x)})$$

    Reference: Bai et al., Collaborative Anomaly Detection, equation 3.

    Example:
        >>> import torch
        >>> bool(torch.isclose(logistic(torch.zeros(3), torch.zeros(5)), torch.tensor(4.0).log()))
        True
    """
    return softplus(-own).mean() + softplus(population).mean()


def fit_joint(
    loss: Loss,
    network: nn.Module,
    vectors: nn.Embedding,
    shown: Exposures,
    watched: Exposures,
    schedule: Schedule,
    decay: float = 0.0,
    pace: float = 1.0,
) -> History:
    """Trains a network, and the embeddings of all tasks with it.

    Args:
        loss: Maps the rows of some exposures, and the embeddings of their tasks, to a number.
        network: What moves.
        vectors: The embeddings; those that require no gradient stay.
        shown: Exposures to train on.
        watched: Exposures on which the loss is to fall; none for a fixed number of epochs.
        schedule: How long and how fast.
        decay: Weight of the squared distance of embeddings from where they started.
        pace: Step size of the embeddings, as a multiple of that of the network.
    """
    first = vectors.weight.detach().clone()

    def terms(batch: Batch) -> dict[str, Tensor]:
        index, tasks = batch
        embeddings = vectors(tasks)
        found = {"loss": loss(shown.X[index], embeddings)}
        if decay and vectors.weight.requires_grad:
            found["decay"] = decay * (embeddings - first[tasks]).square().sum(dim=1).mean()
        return found

    optimizer = optimizer_of(network, vectors, schedule, pace)
    return train(
        descend(optimizer, terms),
        Batches((shown.index, shown.tasks), schedule.batch_size),
        epochs=schedule.epochs,
        state={"network": network, "vectors": vectors, "optimizer": optimizer},
        validate=(lambda: mean_loss(terms, watched, schedule.batch_size)) if len(watched) else None,
        patience=schedule.patience,
        label="all tasks",
    )


def mean_loss(terms: Terms, watched: Exposures, batch_size: int) -> float:
    """The first term over held-out exposures, in batches that are the same each time."""
    with local_seed(0):
        batches = Batches((watched.index, watched.tasks), max(batch_size, 256))
        losses = [(float(next(iter(terms(batch).values()))), len(batch[0])) for batch in batches]
    return sum(value * size for value, size in losses) / len(watched)


def ratio_loss(network: RatioNetwork) -> Loss:
    """The logistic loss of a batch, which is also its own sample of the population."""
    return lambda X, embeddings: logistic(*network.head.contrast(network.rows(X), embeddings))
