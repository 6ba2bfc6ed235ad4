"""Promises for this very model: rates that hold with a stated confidence over the draw of the held-out rows."""

from math import ceil, floor, log, log1p

import numpy as np
from scipy.special import gammaln
from scipy.stats import beta

from offmap.arrays import FloatArray
from offmap.parameters import Fraction, require


def rows_needed(alpha: float, confidence: float | None = None) -> int:
    r"""How many held-out rows are needed to promise a false-alarm rate.

    Without a confidence the rate is that over many models, and $n \ge 1/\alpha - 1$. With one, the rate of this very
    model is at most $\alpha$ with that confidence if $(1 - \alpha)^n \le 1 - \text{confidence}$. So many rows make the
    promise possible; with more of them the threshold comes closer to the one at the rate $\alpha$.

    Args:
        alpha: False-alarm rate.
        confidence: Share of the models that keep it; None for the rate over many models.

    Example:
        >>> rows_needed(0.05), rows_needed(0.05, confidence=0.9), rows_needed(0.01, confidence=0.9)
        (19, 45, 230)
    """
    require("alpha", alpha, Fraction)
    require("confidence", confidence, Fraction | None)
    if confidence is None:
        return ceil(1 / alpha - 1 - 1e-9)
    return ceil(log(1 - confidence) / log1p(-alpha) - 1e-9)


def rows_above(n: int, alpha: float, confidence: float | None = None) -> int:
    r"""How many of ``n`` held-out rows may lie above the threshold; negative if no threshold keeps the promise.

    A threshold with $m$ of $n$ held-out rows above it has a false-alarm rate of $\mathrm{Beta}(m + 1, n - m)$. Its mean
    is at most $\alpha$ for $m + 1 \le \alpha (n + 1)$; with a confidence, its quantile must be.

    Example:
        >>> rows_above(199, 0.05), rows_above(199, 0.05, confidence=0.9), rows_above(18, 0.05)
        (9, 5, -1)
    """
    # The small term undoes the rounding of products such as 20 * 0.05, which must count as 1.
    most = floor((n + 1) * alpha + 1e-9) - 1
    if confidence is None:
        return most
    m = np.arange(max(most, 0) + 1)
    m = m[m < n]
    keeps = np.asarray(beta.cdf(alpha, m + 1, n - m)) >= confidence
    return int(np.count_nonzero(keeps)) - 1


def conditional_p_values(n: int, p: FloatArray, confidence: float) -> FloatArray:
    r"""Enlarges conformal p-values so that they hold for this very model, at every rate at once, with a confidence.

    With $\delta = 1 - \text{confidence}$, $k = \lfloor n / 2 \rfloor$ and $j = (n + 1) p$ the p-value becomes

    $$1 - \delta^{1/k} \left(\prod_{l=0}^{k-1} \frac{n + 1 - j - l}{n - l}\right)^{1/k}.$$

    With a probability of at least $1 - \delta$ over the held-out rows, the share of future normal rows with such a
    p-value of at most $t$ is at most $t$, for all $t$.

    Args:
        n: Number of held-out rows.
        p: Conformal p-values.
        confidence: Probability that the model is one for which they hold.

    Reference: Bates, Candès, Lei, Romano and Sesia, Testing for Outliers with Conformal p-values, Annals of Statistics
        2023, section 3.2 (the generalised Simes adjustment).

    Example:
        >>> conditional_p_values(1000, np.array([1 / 1001, 50 / 1001]), 0.9).round(3)
        array([0.005, 0.072])
    """
    k, places = max(n // 2, 1), np.rint(p * (n + 1))
    i = n + 1 - places
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = gammaln(i + 1) - gammaln(i - k + 1) - gammaln(n + 1) + gammaln(n - k + 1)
    adjusted = 1 - np.exp((log1p(-confidence) + logs) / k)
    return np.where(i >= k, np.maximum(adjusted, p), 1.0)
