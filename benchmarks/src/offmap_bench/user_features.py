"""Vectors of users, learnt from who was exposed to what by a DeepFM."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus
from torch.optim import Adam

from offmap import tensorfile
from offmap.data.store import user_cache
from offmap.metrics import auroc
from offmap.random_state import local_seed
from offmap.train import Batches, descend, train
from offmap_bench.deepfm import DeepFM
from offmap_bench.movielens import MovieLens, movielens

PROFILE = ("gender", "age", "occupation", "zip")
DEMOGRAPHIC = ("id", *PROFILE)
BEHAVIOUR = ("id",)
WIDTH = 100
HELD_OUT = 0.05
LEARNING_RATE, DROPOUT = 3e-3, 0.2


@dataclass(frozen=True)
class UserFeatures:
    """What the DeepFM makes of each user.

    Args:
        vectors: One line a user.
        auroc: How well it tells held-out exposures from users paired with the films of others.
        epochs: Passes until the validation loss was best.
    """

    vectors: NDArray[np.float32]
    auroc: float
    epochs: int


@dataclass(frozen=True)
class Interactions:
    """Exposures as rows of codes, and the same users with films that others were exposed to.

    Films of the made-up pairs come as often as in the exposures, so the best logit is
    $\\log p(\\text{user}, \\text{film}) / p(\\text{user})\\, p(\\text{film})$.
    """

    users: Tensor
    rows: Tensor
    films: Tensor

    def pairs(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Codes of the chosen exposures, and of as many made-up ones."""
        users, films = self.users[self.rows[chosen]], self.films[chosen]
        strangers = films[torch.randperm(len(films))]
        return torch.column_stack([users, films]), torch.column_stack([users, strangers])


def learn_users(
    data: MovieLens, fields: Sequence[str], seed: int, *, epochs: int = 30, patience: int = 2, batch_size: int = 8192
) -> UserFeatures:
    """Fits a DeepFM to the exposures and returns the vectors of its user fields.

    Of the exposures, 5 % stop the training and 5 % measure what was learnt. All users take part.

    Args:
        data: Users and exposures.
        fields: The fields that a user is known by, and that make the vector, each with an equal part of its width.
        seed: Of the split and of the network.
        epochs: Passes at the most.
        patience: Passes without a lower validation loss after which it stops.
        batch_size: Exposures, and as many made-up pairs, in a step.
    """
    codes = np.column_stack([np.unique(data.users[name], return_inverse=True)[1] for name in fields])
    films, film_codes = np.unique(data.films, return_inverse=True)
    users = torch.from_numpy(codes)
    interactions = Interactions(users, torch.from_numpy(data.rows), torch.from_numpy(film_codes))
    sizes = {name: int(codes[:, place].max()) + 1 for place, name in enumerate(fields)}
    with local_seed(seed):
        network = DeepFM(sizes | {"film": len(films)}, dim=WIDTH // len(fields), dropout=DROPOUT)
        test, stop, learn = _split(torch.randperm(len(data.rows)))
        losses = _fit(network, interactions, Batches((learn,), batch_size), interactions.pairs(stop), epochs, patience)
        with torch.no_grad():
            real, made_up = (network(rows).numpy() for rows in interactions.pairs(test))
            vectors = network.vectors({name: users[:, place] for place, name in enumerate(fields)}).numpy()
    return UserFeatures(vectors, auroc(made_up, real), int(np.argmin(losses)) + 1)


def _split(order: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    part = max(round(HELD_OUT * len(order)), 1)
    return order[:part], order[part : 2 * part], order[2 * part :]


def _fit(
    network: DeepFM,
    interactions: Interactions,
    batches: Batches,
    held_out: tuple[Tensor, Tensor],
    epochs: int,
    patience: int,
) -> list[float]:
    """Trains the network and returns the validation loss after each epoch."""
    optimizer = Adam(network.parameters(), lr=LEARNING_RATE)

    def loss(pairs: tuple[Tensor, Tensor]) -> Tensor:
        real, made_up = network(torch.cat(pairs)).chunk(2)
        return softplus(-real).mean() + softplus(made_up).mean()

    step = descend(optimizer, lambda batch: {"loss": loss(interactions.pairs(batch[0]))})
    state: dict[str, Any] = {"network": network, "optimizer": optimizer}
    history = train(
        step, batches, epochs=epochs, state=state, validate=lambda: float(loss(held_out)), patience=patience
    )
    return history["validation"]


@lru_cache(maxsize=4)
def user_features(fields: tuple[str, ...], seed: int, until: int | None = None) -> UserFeatures:
    """The users of MovieLens-1M; learnt once and kept in the user's cache.

    Args:
        fields: The fields that a user is known by.
        seed: Of the network.
        until: Learns from the first so many films of each user only.
    """
    settings = (fields, seed, until, WIDTH, HELD_OUT, LEARNING_RATE, DROPOUT)
    identity = hashlib.sha256(repr(settings).encode()).hexdigest()[:16]
    path = user_cache() / "benchmarks" / f"movielens-users-{identity}.safetensors"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        data = movielens()
        known = data if until is None else data.only((data.ranks > 0) & (data.ranks <= until))
        tensorfile.write(path, asdict(learn_users(known, fields, seed)))
    return UserFeatures(**tensorfile.read(path))
