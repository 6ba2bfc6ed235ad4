"""The tables of the service: small runs, in which everything is answered and nothing is lost."""

import pytest

from offmap.density import MahalanobisDetector
from offmap_bench.tables.service import BATCHES, ONE, Workload, measure
from offmap_bench.tables.service_endurance import measure_crowd, measure_kills, measure_swaps
from offmap_bench.tables.service_page import measure as measure_page


@pytest.mark.parametrize(("form", "column"), [("JSON", BATCHES), ("bytes", ONE)])
def test_http_and_library_are_compared(form: str, column: str) -> None:
    small = Workload(model=MahalanobisDetector(), form=form, turns=1, batches=4)
    found = measure(small, column, 0)
    assert found["added ms"] == pytest.approx(found["HTTP ms"] - found["library ms"])
    assert found["HTTP / library"] > 0


def test_a_crowd_is_answered_while_versions_change() -> None:
    found = measure_crowd({"clients": 8, "seconds": 0.5}, "", 0)
    assert found["failed"] == 0
    assert found["answered"] > 0
    assert found["MiB after"] > 10
    found = measure_swaps({"clients": 4, "seconds": 0.5}, "", 0)
    assert found["failed"] == 0
    assert found["swaps"] > 0


def test_no_acknowledged_act_is_lost() -> None:
    found = measure_kills({"kills": 2}, "", 0)
    assert found["lost"] == 0
    assert found["kills"] == 2


def test_the_page_is_timed_with_its_rows() -> None:
    found = measure_page({"rows": 200, "groups": 10, "acts": 2}, "", 0)
    assert found["groups"] >= 5
    assert found["rows"] >= 100
    assert found["first page s"] > 0
    assert found["act ms"] > 0
