"""One page of results per paper: what it states, in its own order, and how its protocol differs from ours."""

from offmap_bench.papers import (
    collaborative,
    negative_sampling,
    open_set,
    robustifying,
    sampling,
    total_correlation,
)
from offmap_bench.papers.page import Page, assigned

PAPERS = (
    total_correlation.PAGE,
    open_set.PAGE,
    collaborative.PAGE,
    sampling.PAGE,
    negative_sampling.PAGE,
    robustifying.PAGE,
)

__all__ = ["PAPERS", "Page", "assigned"]
