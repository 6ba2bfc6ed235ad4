"""The tasks of known information: their truths against densities, and the table that uses them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_t

from offmap.dependence import gaussian, ksg
from offmap_bench.tables.known_information import COLUMNS, KNOWN, measure
from offmap_bench.tables.known_information_tasks import (
    TASKS,
    additive,
    bimodal,
    dense,
    half_cube,
    mixed,
    normal,
    one,
    sparse,
    spiral,
    student,
    swiss_roll,
    wiggly,
)


def test_there_are_many_tasks_of_one_to_twenty_five_columns() -> None:
    widths = {task.draw(4, np.random.default_rng(0))[0].shape[1] for task in TASKS.values()}
    assert len(TASKS) >= 20
    assert {1, 2, 3, 5, 25} <= widths


def test_the_truth_of_gaussians_is_what_their_samples_share() -> None:
    for task in (dense(3, 2), dense(25, 25), normal(sparse(5, 5))):
        assert gaussian(*task.draw(20_000, np.random.default_rng(0))) == pytest.approx(task.truth, abs=0.03)


@pytest.mark.parametrize(("width", "freedom", "correlations"), [(1, 1, (0.75,)), (2, 3, (0.8, 0.8)), (3, 5, (0.0,))])
def test_the_truth_of_student_variables_is_the_mean_log_ratio(
    width: int, freedom: int, correlations: tuple[float, ...]
) -> None:
    cross = sparse(width, width, correlations)
    task = student(cross, freedom)
    x, y = task.draw(40_000, np.random.default_rng(0))
    shape = np.block([[np.eye(width), cross], [cross.T, np.eye(width)]])
    both = multivariate_t(shape=shape, df=freedom).logpdf(np.hstack([x, y]))
    alone = [multivariate_t(shape=np.eye(width), df=freedom).logpdf(part) for part in (x, y)]
    assert np.mean(both - alone[0] - alone[1]) == pytest.approx(task.truth, abs=0.03)


@pytest.mark.parametrize("noise", [0.1, 0.4, 0.5, 0.75, 2.0])
def test_the_truth_of_additive_noise_is_what_neighbours_find(noise: float) -> None:
    task = additive(noise)
    assert ksg(*task.draw(8000, np.random.default_rng(0))) == pytest.approx(task.truth, abs=0.05)


def test_warps_of_columns_rise() -> None:
    grid = np.linspace(-4, 4, 2001)[:, None]
    for warp in (half_cube, bimodal, wiggly):
        assert (np.diff(warp(grid)[:, 0]) > 0).all()


def test_warps_of_rows_can_be_undone() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 3))
    turned = spiral(1 / 3)(rows)
    np.testing.assert_allclose(spiral(-1 / 3)(turned), rows, atol=1e-12)
    assert not np.allclose(turned, rows)
    rotated = mixed(np.asarray, seed=1)(rows)
    np.testing.assert_allclose((rotated**2).sum(1), (rows**2).sum(1))
    rolled = swiss_roll(rows[:, :1])
    angle = 1.5 * np.pi * (1 + 2 * np.argsort(np.argsort(rows[:, 0])) / 50)
    assert np.corrcoef(np.hypot(*rolled.T), angle)[0, 1] > 0.99


def test_a_warped_task_keeps_its_truth_and_its_rows() -> None:
    plain, warped = normal(one(0.75)), normal(one(0.75)).warped(half_cube, half_cube)
    assert plain.truth == warped.truth
    x, _ = plain.draw(10, np.random.default_rng(3))
    np.testing.assert_array_equal(half_cube(x), warped.draw(10, np.random.default_rng(3))[0])


def test_the_table_measures_errors_from_the_truth_on_the_same_rows() -> None:
    column = KNOWN.columns[0]
    assert column == "normal 1×1 (0.41)"
    for row in KNOWN.rows:
        found = measure(replace(KNOWN.rows[row], rows=600), column, 0)
        assert found["error"] == pytest.approx(abs(found["estimate"] - COLUMNS[column].truth))
        assert found["error"] < 0.2
