"""The novelty of known rows, from rows without a label and a few audit rows."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from offmap.loop.mixture import known_novelty

Array = NDArray[Any]
ALPHA = 0.1


def stream(rng: np.random.Generator, share: float, rows: int = 1500) -> tuple[Array, Array]:
    """Novelty of rows, and which are known; unknown rows are two standard deviations more novel."""
    known = rng.random(rows) < share
    return rng.normal(size=rows) + 2.0 * ~known, known


def rates(share: float, audits: int) -> tuple[Array, Array]:
    """True false-alarm rates over forty streams, and whether each lies in its interval.

    Args:
        share: Share of known rows.
        audits: Number of audit rows.
    """
    found, inside = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        novelty, _ = stream(rng, share)
        audit, told = stream(rng, share, audits)
        estimate = known_novelty(novelty, audit, told, alpha=ALPHA)
        fresh = rng.normal(size=20_000)
        found.append(np.mean(fresh > np.quantile(estimate.values, 1 - ALPHA)))
        inside.append(estimate.rate[1] <= found[-1] <= estimate.rate[2])
    return np.array(found), np.array(inside)


@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_the_rate_is_kept_with_few_audit_rows_whatever_the_share_of_known_rows(share: float) -> None:
    found, inside = rates(share, audits=40)
    assert abs(found.mean() - ALPHA) < 0.03
    assert inside.mean() > 0.85


def test_it_varies_less_than_a_quantile_of_the_audit_rows() -> None:
    found, _ = rates(0.7, audits=40)
    alone = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        audit, told = stream(rng, 0.7, 40)
        alone.append(np.mean(rng.normal(size=20_000) > np.quantile(audit[told], 1 - ALPHA)))
    assert found.std() < 0.75 * np.std(alone)
