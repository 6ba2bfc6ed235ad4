"""Figures: every row is in a bar, marks are where they belong, tails and infinities do no harm."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.patches import StepPatch
from numpy.typing import NDArray

from offmap import metrics
from offmap.report import Report, Section
from offmap.report.curves import draw_roc, roc_curve, roc_figure, training_figure
from offmap.report.histogram import draw_histogram, groups_of, histogram, view_of
from offmap.report.page import render
from offmap.report.style import DARK, STYLE
from tests.report.parts import page, section

SCORES = arrays(
    np.float64,
    st.integers(1, 40),
    elements=st.floats(-1e30, 1e30, allow_nan=False) | st.sampled_from([np.inf, -np.inf, 0.0]),
)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(first=SCORES, second=SCORES, limit=st.floats(-1e30, 1e30) | st.just(np.inf))
def test_axis_always_holds_the_threshold_and_most_of_the_reference(
    first: NDArray[np.float64], second: NDArray[np.float64], limit: float
) -> None:
    view = view_of([first, second], limit)
    edges = view.edges(13)
    finite = first[np.isfinite(first)]
    assert np.isfinite([view.low, view.high]).all()
    assert view.low < view.high
    assert (np.diff(edges) >= 0).all()
    assert not np.isfinite(limit) or view.low <= limit <= view.high
    assert view.beyond(finite) <= 0.12 * len(finite)


def test_heavy_tails_do_not_hide_the_bulk() -> None:
    rng = np.random.default_rng(0)
    bulk = rng.normal(size=1000)
    light, cut = view_of([bulk, bulk + 3], 2.0), view_of([bulk, np.append(bulk, 1e9)], 2.0)
    logarithmic = view_of([np.exp(bulk), np.exp(3 * bulk + 9)], 6.0)
    confident = view_of([np.append(np.exp(4 * bulk - 20), 0.0), np.exp(-np.abs(bulk))], 1e-4)
    far = view_of([bulk, bulk + 1e6], 2.0)
    assert (light.low, light.high) == (bulk.min(), bulk.max() + 3)
    assert cut.high < 10
    assert logarithmic.log
    assert confident.log
    assert far.high < 100
    assert far.beyond(bulk + 1e6) == 1000


def test_cut_axis_says_what_lies_beyond() -> None:
    tail = np.append(np.linspace(0, 1, 500), [1e9, np.inf])
    text = page(section(normal_novelty=tail, novel_novelty=np.linspace(1, 3, 50))).text
    assert "The axis is cut: 2 of 502 normal rows lie beyond its ends" in text
    assert "1 of them infinite" in text
    assert "The axis is cut" not in page(section()).text


NEXT_TO_3 = np.array([3.0, np.nextafter(3, 4)])


@pytest.mark.parametrize(
    "scores", [np.full(9, np.inf), np.full(9, -np.inf), np.full(9, 3.0), np.array([1e30, -1e30]), NEXT_TO_3]
)
@pytest.mark.parametrize("limit", [3.0, np.inf])
def test_extreme_scores_are_drawn(scores: NDArray[np.float64], limit: float) -> None:
    seen = page(section(normal_novelty=scores, novel_novelty=scores, threshold=limit))
    assert seen.row("threshold")[1] == ("∞" if np.isinf(limit) else "3")


def test_bars_hold_every_row_and_the_threshold_is_where_it_is() -> None:
    tail = np.concatenate([np.linspace(-1, 1, 300), [1e9, np.inf, -np.inf]])
    drawn = section(normal_novelty=tail, novel_novelty=np.linspace(1, 3, 50), threshold=0.7)
    groups = groups_of(drawn)
    figure = draw_histogram(drawn, groups, view_of(list(groups.values()), drawn.threshold))
    axes = figure.axes[0]
    shares = [bars.get_data()[0] for bars in axes.patches if isinstance(bars, StepPatch)]
    assert [share.sum() for share in shares] == pytest.approx([100] * 4)
    assert np.array_equal(axes.lines[0].get_xdata(), [0.7, 0.7])
    assert axes.get_xlabel() == "novelty (higher = more novel)"
    assert axes.get_ylabel() == "share of the group's rows (%)"


def test_roc_marks_the_operating_point() -> None:
    drawn = section(normal_novelty=np.arange(10.0), novel_novelty=np.arange(5.0, 15.0), threshold=6.5)
    point = draw_roc(drawn).axes[0].lines[-1]
    assert np.array_equal(point.get_xydata(), [[30.0, 80.0]])


@settings(deadline=None, derandomize=True)
@given(normal=SCORES, novel=SCORES)
def test_roc_curve_encloses_the_area_of_the_metric(normal: NDArray[np.float64], novel: NDArray[np.float64]) -> None:
    false_alarms, recall = roc_curve(normal, novel)
    assert np.trapezoid(recall, false_alarms) == pytest.approx(metrics.auroc(normal, novel))


def test_figures_follow_the_theme(plain: Section) -> None:
    html = histogram(plain, "a") + roc_figure(plain, "b") + training_figure(plain.history, "c")
    colours = re.findall(r"(var\(--[\w-]+, )?#[0-9a-f]{6}", html)
    assert len(colours) > 20
    assert all(colours)
    assert {name for name, _ in re.findall(r"var\((--[\w-]+), (#\w+)\)", html)} <= set(re.findall(r"--[\w-]+", DARK))
    assert set(re.findall(r"var\((--[\w-]+)", STYLE)) <= set(re.findall(r"--[\w-]+(?=:)", DARK))


@pytest.mark.parametrize("history", [{}, {"loss": []}])
def test_no_training_no_curves(history: dict[str, list[float]]) -> None:
    assert "Training" not in page(section(history=history)).text


@pytest.mark.parametrize(
    "history",
    [
        {"loss": [0.5]},
        {"loss": [np.inf, np.nan]},
        {"a": [1e-6, 1e3], "b": [2.0], "c": []},
        {str(k): [1.0, k] for k in range(25)},
    ],
)
def test_each_term_has_a_line_and_an_entry(history: dict[str, list[float]]) -> None:
    html = render(Report(title="A run", sections=[section(history=history)]))
    training = html[html.index("<h4>Training") :]
    legend = training[: training.index("</ul>")]
    assert re.findall(r"</svg>([^<]*)</li>", legend) == [name for name, values in history.items() if values]
