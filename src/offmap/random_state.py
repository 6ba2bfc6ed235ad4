"""Seeds: one way to turn ``random_state`` into draws that depend on nothing else and disturb nobody.

NumPy's draws take a generator. Torch's layers and dropout draw from the global generator of the process only, so
``local_seed`` lends it out: one thread at a time, and the caller's state is put back.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np
import torch

RandomState = int | np.random.RandomState | np.random.Generator | None
_TORCH_GENERATOR = RLock()


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Turns what users give as ``random_state`` into a NumPy generator.

    Example:
        >>> int(as_generator(0).integers(100)) == int(np.random.default_rng(0).integers(100))
        True
        >>> as_generator(-1)
        Traceback (most recent call last):
        ValueError: random_state must be None, an integer at least 0 or a NumPy generator; got -1
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        wanted = "None, an integer at least 0 or a NumPy generator"
        raise ValueError(f"random_state must be {wanted}; got {random_state!r}") from None


def draw_seed(random_state: RandomState) -> int:
    """Draws a seed for torch, or for an estimator inside another.

    Example:
        >>> draw_seed(0) == draw_seed(np.random.default_rng(0))
        True
    """
    return int(as_generator(random_state).integers(2**31))


def torch_seed() -> int:
    """Draws a seed from torch's generator, for an estimator of another library that is fitted inside ``local_seed``.

    Example:
        >>> with local_seed(0):
        ...     first = torch_seed()
        >>> with local_seed(0):
        ...     torch_seed() == first
        True
    """
    return int(torch.randint(2**31 - 1, ()))


@contextmanager
def local_seed(seed: int) -> Iterator[None]:
    """Makes torch's draws inside the block depend on ``seed`` alone and leaves the caller's random state untouched.

    Two blocks in two threads take turns. A thread that is started inside a block must not open one of its own: it
    would wait for the block to end.

    Example:
        >>> before = torch.get_rng_state()
        >>> with local_seed(0):
        ...     _ = torch.randn(3)
        >>> bool((torch.get_rng_state() == before).all())
        True
    """
    with _TORCH_GENERATOR, torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def seed_parts(estimator: Any, rng: np.random.Generator) -> None:
    """Sets every ``random_state`` that is None in an estimator of others, those inside a pipeline included."""
    for name, value in sorted(estimator.get_params(deep=True).items()):
        if value is None and name.rpartition("__")[2] == "random_state":
            estimator.set_params(**{name: draw_seed(rng)})
