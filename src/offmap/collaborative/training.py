"""Trains one network for all entities, together with their embeddings."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.optim import AdamW, Optimizer, SparseAdam

from offmap.collaborative.heads import RatioHead
from offmap.collaborative.observations import Observations
from offmap.random_state import local_seed
from offmap.ratio import ratio_loss
from offmap.train import Batch, Batches, History, Sampler, descend, train

Loss = Callable[[Tensor, Tensor], Tensor]
Terms = Callable[[Batch], dict[str, Tensor]]
# Step size of embeddings that start from nothing, as a multiple of the network's: they move only in batches that hold
# rows of their entity.
EMBEDDING_LR_FACTOR = 10.0


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long and how fast to train.

    Args:
        epochs: Passes over the observations at most.
        batch_size: Observations per step.
        lr: Step size of AdamW.
        weight_decay: Weight decay of the networks.
        patience: Epochs without a lower validation loss after which training stops; None for all epochs.
        validation: Share of the observations that the validation loss is computed on.
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

    def split(self, observed: Observations) -> tuple[Observations, Observations]:
        """Observations to train on and to validate on; none of the latter without ``patience``."""
        return observed.split(self.validation) if self.patience is not None else (observed, observed.none())


class Together(Optimizer):
    """Several optimisers that step as one; each keeps its own parameters.

    Embeddings move by ``SparseAdam``, which touches only the entities of a batch: a step costs the same however many
    entities there are.
    """

    def __init__(self, *parts: Optimizer) -> None:
        self.parts = parts
        super().__init__([group for part in parts for group in part.param_groups], {})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none)

    def step(self, closure: Any = None) -> None:  # type: ignore[override] # no closure is ever given
        """One step of each."""
        for part in self.parts:
            part.step()


def optimizer_of(
    network: nn.Module, vectors: nn.Embedding | None, schedule: Schedule, lr_factor: float = 1.0
) -> Optimizer:
    """Moves a network and, at ``lr_factor`` times its step size, the embeddings that require a gradient."""
    dense = AdamW(network.parameters(), lr=schedule.lr, weight_decay=schedule.weight_decay)
    if vectors is None or not vectors.weight.requires_grad:
        return dense
    return Together(dense, SparseAdam([vectors.weight], lr=lr_factor * schedule.lr))


def fit_jointly(
    loss: Loss,
    network: nn.Module,
    vectors: nn.Embedding,
    observed: Observations,
    validation: Observations,
    schedule: Schedule,
    decay: float = 0.0,
    lr_factor: float = 1.0,
    batches: Sampler | None = None,
) -> History:
    """Trains a network and the embeddings of all entities with it.

    Args:
        loss: Maps the rows of some observations, and the embeddings of their entities, to a number.
        network: What is trained.
        vectors: The embeddings; those that require no gradient stay as they are.
        observed: Observations to train on.
        validation: Observations for the validation loss; none for a fixed number of epochs.
        schedule: How long and how fast.
        decay: Weight of the squared distance of embeddings from where they started.
        lr_factor: Step size of the embeddings, as a multiple of that of the network.
        batches: Rows of ``observed.X`` and entities to train on, if not the observations.
    """
    first = vectors.weight.detach().clone()

    def terms(batch: Batch) -> dict[str, Tensor]:
        index, entities = batch
        embeddings = vectors(entities)
        found = {"loss": loss(observed.X[index], embeddings)}
        if decay and vectors.weight.requires_grad:
            found["decay"] = decay * (embeddings - first[entities]).square().sum(dim=1).mean()
        return found

    optimizer = optimizer_of(network, vectors, schedule, lr_factor)
    return train(
        descend(optimizer, terms),
        Batches((observed.index, observed.entities), schedule.batch_size) if batches is None else batches,
        epochs=schedule.epochs,
        state={"network": network, "vectors": vectors, "optimizer": optimizer},
        validate=(lambda: mean_loss(terms, validation, schedule.batch_size)) if len(validation) else None,
        patience=schedule.patience,
        label="all entities",
    )


def mean_loss(terms: Terms, validation: Observations, batch_size: int) -> float:
    """The first term over validation observations, in batches that are the same each time."""
    with local_seed(0):
        batches = Batches((validation.index, validation.entities), max(batch_size, 256))
        losses = [(float(next(iter(terms(batch).values()))), len(batch[0])) for batch in batches]
    return sum(value * size for value, size in losses) / len(validation)


def contrast_loss(features: nn.Module, head: RatioHead) -> Loss:
    """The logistic loss of a batch, which is also its own sample of the rows of all entities.

    Reference: Bai et al., Collaborative Anomaly Detection, equation 3.
    """
    return lambda X, embeddings: ratio_loss(*head.contrast(features(X), embeddings))
