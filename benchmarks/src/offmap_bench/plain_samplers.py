"""Plain samplers to compare with: importance resampling, and random-walk Metropolis."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

LogDensity = Callable[[Tensor], Tensor]
# Rows whose log density is evaluated at once.
_CHUNK = 100_000


def _values(log_u: LogDensity, x: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([log_u(rows) for rows in x.split(_CHUNK)])


@dataclass(frozen=True)
class ImportanceResampling:
    """Draws uniform points of a window and keeps each in proportion to its density.

    Args:
        proposals: Uniform points per wanted sample.
    """

    proposals: int = 5

    def draw(self, log_u: LogDensity, low: Tensor, high: Tensor, n: int, seed: int) -> Any:
        """Draws ``n`` samples, ``(n, d)``, with replacement."""
        rng = torch.Generator().manual_seed(seed)
        x = low + (high - low) * torch.rand(self.proposals * n, len(low), generator=rng)
        weights = _values(log_u, x).double().softmax(0).cumsum(0)
        rows = torch.searchsorted(weights, torch.rand(n, dtype=torch.float64, generator=rng))
        return x[rows.clamp(max=len(x) - 1)].numpy()


@dataclass(frozen=True)
class Metropolis:
    """Random-walk Metropolis: many chains that start uniformly in a window and are kept inside it.

    Args:
        chains: Number of chains; every chain gives as many of the samples.
        burn_in: Steps before the first sample.
        every: Steps between samples.
        step: Standard deviation of a step, as a share of the window.
    """

    chains: int = 2000
    burn_in: int = 1000
    every: int = 10
    step: float = 0.1

    def draw(self, log_u: LogDensity, low: Tensor, high: Tensor, n: int, seed: int) -> Any:
        """Draws ``n`` samples, ``(n, d)``."""
        rng = torch.Generator().manual_seed(seed)
        x = low + (high - low) * torch.rand(self.chains, len(low), generator=rng)
        value, kept = _values(log_u, x), []
        rounds = -(-n // self.chains)
        for turn in range(1, self.burn_in + rounds * self.every + 1):
            moved = x + self.step * (high - low) * torch.randn(x.shape, generator=rng)
            inside = ((moved > low) & (moved < high)).all(1)
            new = _values(log_u, torch.where(inside[:, None], moved, x))
            accepted = inside & (torch.rand(len(x), generator=rng).log() < new - value)
            x, value = torch.where(accepted[:, None], moved, x), torch.where(accepted, new, value)
            if turn > self.burn_in and (turn - self.burn_in) % self.every == 0:
                kept.append(x)
        return torch.cat(kept)[:n].numpy()
