"""A bet against exchangeability: its capital stays small while nothing changes, and grows after a change."""

from typing import NamedTuple, Self

import numpy as np

from offmap.arrays import FloatArray

# Bets on large p-values, on nothing, and on small ones.
_BETS = np.array([1.0, 0.0, -1.0])


class Jumper(NamedTuple):
    r"""The simple jumper martingale after some rows: its capital (as a logarithm), and how the three bets share it.

    Each state $\varepsilon \in \{-1, 0, 1\}$ multiplies its capital by $1 + \varepsilon (p - \frac{1}{2})$; before each
    row a share $J$ of the capital is redistributed evenly. Uniform p-values let the capital reach $c$ times its start
    with a probability of at most $1 / c$, at any time.

    Args:
        log_capital: One per run.
        shares: One line per run, one column per bet.

    Reference: Vovk, Petej, Nouretdinov, Ahlberg, Carlsson and Gammerman, Retrain or not retrain, 2021, algorithm 1.

    Example:
        >>> after, path = Jumper.start(1).play(np.full((1, 200), 0.05), jump=0.01)
        >>> bool(after.log_capital[0] > np.log(100))
        True
    """

    log_capital: FloatArray
    shares: FloatArray

    @classmethod
    def start(cls, runs: int) -> Self:
        """A capital of 1 per run, evenly shared."""
        return cls(np.zeros(runs), np.full((runs, len(_BETS)), 1 / len(_BETS)))

    def play(self, p_values: FloatArray, jump: float) -> tuple["Jumper", FloatArray]:
        """Bets on the p-values ``(runs, m)``; returns the state after them and the path of the log capital."""
        shares, level = self.shares.copy(), self.log_capital.copy()
        path = np.empty(p_values.shape)
        for t, p in enumerate(p_values.T):
            shares = (1 - jump) * shares + jump / len(_BETS)
            shares = shares * (1 + _BETS * (p[:, None] - 0.5))
            gain = shares.sum(axis=1)
            level, shares = level + np.log(gain), shares / gain[:, None]
            path[:, t] = level
        return Jumper(level, shares), path
