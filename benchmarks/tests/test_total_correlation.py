"""The staircase and the tables about it: what is drawn, what is printed, and what a short climb shows."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from offmap.dependence import TotalCorrelation
from offmap.random_state import local_seed
from offmap_bench.run import run
from offmap_bench.tables import total_correlation_figures as figures
from offmap_bench.tables.total_correlation import (
    CLIMBS,
    HALVED,
    NEIGHBOURS,
    NONPARAMETRIC,
    SAMPLE_SEEDS,
    STAIRCASE,
    WIDTHS,
    measure_climb,
    measure_error,
)
from offmap_bench.tables.total_correlation_figures import smooth
from offmap_bench.tables.total_correlation_staircase import (
    LAST,
    LEVELS,
    SEED_GROUPS,
    SideBySide,
    climbed,
    draw_groups,
    end_of_level,
    hidden_by_term,
)


@pytest.mark.parametrize(("total", "width"), [(2, 20), (10, 20), (10, 2)])
def test_the_four_variables_share_as_much_as_they_should(total: float, width: int) -> None:
    with local_seed(0):
        columns = torch.cat(draw_groups(total, width, 40_000), dim=1).double()
    assert -0.5 * torch.logdet(torch.corrcoef(columns.T)).item() == pytest.approx(total, rel=0.05)


def test_the_pairs_are_independent_of_each_other() -> None:
    with local_seed(0):
        a, b, c, d = draw_groups(6, 3, 20_000)
    across = torch.cat([a, b], 1).T @ torch.cat([c, d], 1) / 20_000
    assert across.abs().max() < 0.04
    assert ((a * b).mean(0) > 0.8).all()


def test_printed_numbers_stand_where_they_belong() -> None:
    assert STAIRCASE.printed["Line InfoNCE", "TC 10", "mean"] == 5.12
    assert STAIRCASE.printed["Tree CLUB", "TC 2", "mean"] == 2.63
    assert NONPARAMETRIC.printed["KNN", "d = 10, TC 2", "error"] == 1.34
    assert NONPARAMETRIC.printed["Tree CLUB", "d = 2, TC 10", "error"] == 1.63
    assert len(NONPARAMETRIC.printed) == 50
    assert NEIGHBOURS.printed["KNN", "d = 10, TC 10", "error"] == 6.98


def test_the_thesis_has_its_own_network_and_all_climb_alike() -> None:
    for row, climb in CLIMBS.items():
        assert (climb.lr, climb.width, climb.steps, climb.batch_size) == (1e-3, 20, 4000, 64)
        if not row.endswith(("wide", "growing")):
            assert dict(climb.settings) == {"hidden": (15,)}


def test_later_terms_of_a_growing_line_have_wider_networks() -> None:
    climb = replace(CLIMBS["Line InfoNCE, growing"], estimator="club")
    with local_seed(0):
        climbers = SideBySide(climb, seeds=2)
        batch = tuple(draw_groups(6, climb.width, 2, climb.batch_size))
    first, second, third = climbers.stacks
    widths = [stack.conditional.mean[0].weight.shape for stack in climbers.stacks]  # type: ignore[union-attr,index]
    assert [tuple(shape) for shape in widths] == [(2, 20, 15), (2, 40, 21), (2, 60, 25)]
    a, b, c, d = batch
    alone = first.value(a, b) + second.value(torch.cat([a, b], 2), c) + third.value(torch.cat([a, b, c], 2), d)  # type: ignore[operator]
    climbers.step(batch)
    torch.testing.assert_close(climbers.values[0], alone.detach())


def test_a_seed_of_a_later_group_has_a_climb_of_its_own() -> None:
    climb = replace(CLIMBS["Tree CLUB"], width=2, steps=3)
    ends = [end_of_level(climb, 4, seed) for seed in (0, 1, 2)]
    np.testing.assert_array_equal(ends[2], climbed(climb, range(2, 3))[0, 1])
    assert len({end.tobytes() for end in ends}) == 3


def test_a_short_climb_rises_and_its_numbers_agree() -> None:
    small = (("hidden", (16,)), ("critic", "separable"), ("n_negatives", "all"))
    climb = replace(CLIMBS["Tree JS, wide"], width=2, steps=80, lr=2e-2, settings=small)
    values = climbed(climb)
    assert values.shape == (len(SEED_GROUPS[0]), len(LEVELS), 80)
    assert not np.allclose(values[0], values[1])
    ends = values[:, :, -40:].mean((0, 2))
    assert ends[4] > ends[0] + 2
    found = measure_climb(climb, "TC 6", 1)
    last = values[1, 2, -LAST:]
    assert found["mean"] == pytest.approx(last.mean())
    assert found["bias"] == pytest.approx(last.mean() - 6)
    assert found["mse"] == pytest.approx(((last - 6) ** 2).mean())


def test_a_climb_is_measured_at_the_width_of_the_column() -> None:
    climb = replace(CLIMBS["Tree CLUB"], steps=3)
    narrow, wide = (measure_error(climb, f"d = {width}, TC 2", 0)["error"] for width in (2, 10))
    assert narrow != wide
    assert wide == pytest.approx(abs(climbed(replace(climb, width=10), SAMPLE_SEEDS)[0, 0].mean() - 2))


def test_table_2_4_has_the_settings_of_the_appendix() -> None:
    climb = NONPARAMETRIC.rows["Tree CLUB"]
    assert (dict(climb.settings), climb.lr, climb.estimator) == ({"hidden": (20,)}, 1e-4, "club_mean")


def best_club(total: int, width: int) -> float:
    """The estimate of the row Tree CLUB where each network predicts the true mean, ρx, of its second variable."""
    climb = NONPARAMETRIC.rows["Tree CLUB"]
    correlation = math.sqrt(1 - math.exp(-total / width))
    tree = TotalCorrelation([width] * 4, decomposition=climb.decomposition, estimator=climb.estimator, hidden=(2,))
    # The first term compares the two pairs, which are independent.
    factors = torch.tensor([0.0, correlation, correlation])[:, None, None]
    tree.estimator.conditional.mean = Scaled(factors)  # type: ignore[method-assign]
    with local_seed(0), torch.no_grad():
        return float(tree.value(draw_groups(total, width, 100_000)))


class Scaled(torch.nn.Module):
    """Multiplies the input of each term by a factor."""

    def __init__(self, factors: Tensor) -> None:
        super().__init__()
        self.factors = factors

    def forward(self, x: Tensor) -> Tensor:
        return self.factors * x


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("total", LEVELS)
def test_club_with_unit_spread_cannot_exceed_four_in_two_columns(total: int, width: int) -> None:
    """Each of the two pairs gives dρ² in its limit, so the estimate stays below 2d."""
    found = best_club(total, width)
    assert found == pytest.approx(2 * width * (1 - math.exp(-total / width)), abs=0.1)
    assert found < 2 * width


def test_half_the_units_are_those_of_the_authors_code() -> None:
    """Ten for single variables, ten times the root of three where pairs are compared."""
    climb = NONPARAMETRIC.rows[HALVED]
    pairs, *single = hidden_by_term(climb)
    assert single == [(10,), (10,)]
    assert pairs == (int(10 * math.sqrt(3)),)
    assert [len(left) for left, _ in TotalCorrelation([2] * 4, decomposition="tree").terms] == [2, 1, 1]
    assert replace(climb, settings=NONPARAMETRIC.rows["Tree CLUB"].settings) == NONPARAMETRIC.rows["Tree CLUB"]


@pytest.mark.parametrize("row", ["KNN", "Bias-improved KNN", "Kernel density", "Tree KSG", "Tree Gaussian copula"])
def test_estimators_of_samples_are_measured_in_two_columns(row: str) -> None:
    few = replace(NONPARAMETRIC.rows[row], rows=800)
    assert measure_error(few, "d = 2, TC 2", 0)["error"] < 1.6


def test_fewer_neighbours_err_less() -> None:
    row = replace(NEIGHBOURS.rows["KNN"], rows=800)
    near, far = (measure_error(replace(row, n_neighbors=count), "d = 2, TC 6", 0)["error"] for count in (1, 5))
    assert near < far - 0.3


def test_running_means_start_with_what_there_is() -> None:
    assert smooth(np.array([1.0, 3.0, 5.0, 7.0]), bandwidth=2).tolist() == [1.0, 2.0, 4.0, 6.0]


def test_figures_are_drawn_from_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {row: replace(climb, width=2, steps=4) for row, climb in CLIMBS.items()}
    monkeypatch.setattr(figures, "STAIRCASE", replace(STAIRCASE, rows=rows))
    monkeypatch.setattr(figures, "run", partial(run, results=tmp_path))
    for figure in (figures.TABLES[0], figures.TABLES[-1]):
        assert figure.save("cpu", tmp_path).stat().st_size > 5000
