"""Checked counts and random generators for the methods that draw samples.

A sampler draws from a generator of its own: it takes no lock, leaves the global random state untouched, and gives the
same bytes from any number of threads.
"""

from typing import Any

import torch

from offmap import parameters
from offmap.parameters import Count
from offmap.random_state import RandomState, draw_seed


def require_count(name: str, value: Any) -> int:
    """Returns ``value`` as a plain integer if it is one of at least 1, else raises a ``ValueError`` that names it.

    Example:
        >>> require_count("n", -1)
        Traceback (most recent call last):
        ValueError: n must be an integer at least 1; got -1
    """
    parameters.require(name, value, Count)
    return int(value)


def torch_rng(random_state: RandomState = None, device: str = "cpu") -> torch.Generator:
    """Makes a torch generator from ``random_state``; ``None`` draws a fresh seed.

    Example:
        >>> a, b = (torch.randn(3, generator=torch_rng(0)) for _ in range(2))
        >>> torch.equal(a, b)
        True
    """
    return torch.Generator(device).manual_seed(draw_seed(random_state))
