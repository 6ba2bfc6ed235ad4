"""The table of posteriors: the data, the metrics and the plot."""

import numpy as np
import pytest
from matplotlib.figure import Figure as Drawing

from offmap.sampling import BinaryVAE
from offmap_bench.tables.sampling_posterior import POSTERIORS, digits, draw_posterior, least_gaussian, measure


def tiny(row: str) -> BinaryVAE:
    method = POSTERIORS.method(row, "cpu")
    assert isinstance(method, BinaryVAE)
    return method.set_params(hidden=(8,), epochs=1)


def test_the_digits_are_black_or_white_and_split_by_the_seed() -> None:
    train, test = digits(0)
    assert len(train) == 1437
    assert len(test) == 360
    assert set(np.unique(train)) == {0, 1}
    assert not np.array_equal(digits(1)[1], test)


@pytest.mark.parametrize("row", [*POSTERIORS.rows])
def test_a_run_gives_every_metric(row: str) -> None:
    measured = measure(tiny(row), "2 latent dimensions", 0)
    assert measured.keys() == set(POSTERIORS.metrics)
    assert measured["gap"] == pytest.approx(measured["log_likelihood"] - measured["elbo"])
    # 64 fair coins.
    assert -64 * np.log(2) - 5 < measured["log_likelihood"] < -10


def test_the_rows_differ_in_the_posterior_alone() -> None:
    first, second = (method.get_params() for method in POSTERIORS.rows.values())
    assert {name for name in first if first[name] != second[name]} == {"posterior"}


def test_the_picture_lays_samples_over_the_true_density() -> None:
    train, test = digits(0)
    fitted = tiny("Gaussian posterior").set_params(random_state=0).fit(train[:200])
    axes = Drawing().subplots()
    draw_posterior(axes, fitted, test[0])
    assert np.shape(axes.collections[-1].get_offsets()) == (300, 2)
    assert len(set(least_gaussian(fitted, test[:20], 4))) == 4
