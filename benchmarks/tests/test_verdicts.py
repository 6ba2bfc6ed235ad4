"""The page of verdicts on stored results: each line is measured with the parameters of now, or says what was found."""

import pytest

from offmap_bench import everything
from offmap_bench.claims import Claim, Finding, judge
from offmap_bench.papers import open_set, sampling, total_correlation
from offmap_bench.places import RESULTS
from offmap_bench.samples import read_samples
from offmap_bench.table import Table

TABLES = {item.name: item for item in everything() if isinstance(item, Table)}
PAGES = (open_set.PAGE, sampling.PAGE, total_correlation.PAGE)
CLAIMS = [claim for page in PAGES for claim in page.claims if claim.table != "disentangling"]


def finding(claim: Claim) -> Finding:
    table = TABLES[claim.table]
    return judge(claim, table, read_samples(table, "cpu", RESULTS)[0])


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.item)
def test_a_line_is_measured_and_has_a_cause_where_it_is_not_reached(claim: Claim) -> None:
    found = finding(claim)
    assert found.outcome != "not run"
    assert found.seeds >= 3
    assert not found.ours.endswith("†")
    assert claim.cause or found.outcome in ("reached", "beaten")
