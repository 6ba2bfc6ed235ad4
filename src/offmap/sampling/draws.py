"""Checked counts and random generators for the methods that draw samples.

A sampler draws from a generator of its own: it takes no lock, leaves the global random state untouched, and gives the
same bytes from any number of threads.
"""

import numpy as np
import torch

from offmap.random_state import RandomState, draw_seed


def require_count(name: str, value: object) -> int:
    """Returns ``value`` if it is an integer of at least 1, else raises a ``ValueError`` that names the argument.

    Example:
        >>> require_count("n", -1)
        Traceback (most recent call last):
        ValueError: n must be an integer at least 1; got -1
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be an integer at least 1; got {value!r}")
    return int(value)


def torch_rng(random_state: RandomState = None, device: str = "cpu") -> torch.Generator:
    """Makes a torch generator from ``random_state``; ``None`` draws a fresh seed.

    Example:
        >>> a, b = (torch.randn(3, generator=torch_rng(0)) for _ in range(2))
        >>> torch.equal(a, b)
        True
    """
    return torch.Generator(device).manual_seed(draw_seed(random_state))
