"""The speed tables of dependence: both sides do the same work."""

from dataclasses import replace

import pytest
import torch

from offmap.dependence import InfoNCE
from offmap_bench.tables.speed_dependence import (
    GROWTH,
    LEARNING,
    NEIGHBOURS,
    Neighbours,
    PlainInfoNCE,
    measure_growth,
    measure_learning,
    measure_neighbours,
)


@pytest.mark.parametrize("width", [1, 2, 6])
def test_both_ways_to_find_neighbours_find_the_same(width: int) -> None:
    ours, theirs = (runner() for runner in Neighbours(width=width, rows=300).runners(0).values())
    assert ours == pytest.approx(theirs, abs=1e-6)


def test_both_ways_to_take_columns_one_by_one_agree() -> None:
    ours, theirs = (runner() for runner in Neighbours(width=4, rows=500, single=True).runners(0).values())
    assert ours == pytest.approx(theirs, abs=0.02)


def test_the_plain_loss_is_ours() -> None:
    plain, ours = PlainInfoNCE(3, (8,)), InfoNCE(3, 3, hidden=(8,))
    weights = plain.network.state_dict()
    parts = {
        "left.weight": weights["0.weight"].T[None, :3],
        "left.bias": weights["0.bias"][None, None],
        "right.weight": weights["0.weight"].T[None, 3:],
        "rest.0.weight": weights["2.weight"].T[None],
        "rest.0.bias": weights["2.bias"][None, None],
    }
    ours.critic.load_state_dict(parts)
    x, y = torch.randn(2, 9, 3)
    torch.testing.assert_close(plain.loss(x, y), ours.loss(x, y))


def test_every_table_measures_its_metrics() -> None:
    work = replace(NEIGHBOURS.rows["2 columns against 2"], rows=100, turns=1)
    assert set(measure_neighbours(work, NEIGHBOURS.columns[0], 0)) == set(NEIGHBOURS.metrics)
    learning = replace(LEARNING.rows["batches of 64"], steps=2, turns=1)
    assert set(measure_learning(learning, LEARNING.columns[0], 0)) == set(LEARNING.metrics)
    for row in GROWTH.rows:
        assert measure_growth(replace(GROWTH.rows[row], turns=1), "4 variables", 0)["ms a step"] > 0
