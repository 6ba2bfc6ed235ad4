"""The report: what it says is true, what it shows is safe, and the file stands alone."""

import re
import subprocess
import sys
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from offmap import metrics
from offmap.calibration import p_values, threshold
from offmap.report import Examples, Report, Sample, Section, SummaryTable, compare, section_from, write_report
from offmap.report.curves import roc_curve
from offmap.report.gallery import deviations_of
from offmap.report.histogram import view_of
from offmap.report.measures import FALSE_ALARMS, FLAGGED, FPR95, PROMISED, RECALL
from offmap.report.page import render
from offmap.report.pictures import as_bytes

ATTACK = "<script>alert('&')</script>"


@dataclass
class Distance:
    """Distance to the mean of the normal rows.

    This line is not part of the description.
    """

    alpha: float = 0.05
    image_shape: tuple[int, ...] | None = None
    calls: list[int] = field(default_factory=list)

    def fit(self, X: NDArray[Any]) -> "Distance":
        """Learns the mean from one half of the rows and the threshold from the other."""
        self.mean_ = X[::2].mean(axis=0)
        self.history_: dict[str, list[float]] = {"loss": [3.0, 2.0, 1.5], "penalty": [0.5, 0.4, 0.3]}
        self.calibration_novelty_ = np.sort(self._distance(X[1::2]))
        self.threshold_ = threshold(self.calibration_novelty_, self.alpha)
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"alpha": self.alpha, "image_shape": self.image_shape}

    def novelty(self, X: Any) -> NDArray[np.float64]:
        self.calls.append(len(X))
        return self._distance(X)

    def predict(self, X: Any) -> NDArray[Any]:
        return np.where(self._distance(X) > self.threshold_, -1, 1)

    def _distance(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(np.linalg.norm(np.asarray(X) - self.mean_, axis=1))


class Classifier(Distance):
    """Names rows by the sign of their first feature."""

    classes_ = np.array(["left", "right"])

    def predict(self, X: Any) -> NDArray[Any]:
        named = np.where(np.asarray(X)[:, 0] < 0, "left", "right")
        return np.where(self._distance(X) > self.threshold_, "unknown", named)


class Page(HTMLParser):
    """What a browser would see."""

    VOID = ("br", "hr", "img", "meta")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.cells: list[list[str]] = []
        self.words: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.cells.append([])
        elif tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.words.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def row(self, first: str) -> list[str]:
        """The first table row that starts with this cell."""
        return next(cells for cells in self.cells if cells and cells[0] == first)


@pytest.fixture(scope="module")
def digits() -> Section:
    data = load_digits()
    images, is_normal = data.data / 16, data.target < 7
    normal, novel = images[is_normal], images[~is_normal]
    detector = Distance(image_shape=(8, 8)).fit(normal[::2])
    return section_from(
        detector,
        Sample(normal[1::2], labels=data.target[is_normal][1::2]),
        Sample(novel, labels=data.target[~is_normal]),
        shown=5,
    )


@pytest.fixture(scope="module")
def plain() -> Section:
    rng = np.random.default_rng(0)
    detector = Distance().fit(rng.normal(size=(200, 3)))
    return section_from(detector, Sample(rng.normal(size=(80, 3))), Sample(rng.normal(1.5, 1, size=(40, 3))), shown=4)


def section(**changes: Any) -> Section:
    rng = np.random.default_rng(1)
    scores = {"normal_novelty": rng.normal(size=60), "novel_novelty": rng.normal(2, 1, size=30)}
    usual: dict[str, Any] = {"name": "method", "threshold": 1.5, "alpha": 0.05} | scores
    return Section(**usual | changes)


def examples(**changes: Any) -> Examples:
    usual: dict[str, Any] = {"title": "rows", "rows": ["one", "two"], "index": [0, 1], "novelty": np.array([2.0, 1.0])}
    return Examples(**usual | changes)


def page(*sections: Section, **report: Any) -> Page:
    return Page(render(Report(**{"title": "A run", "sections": sections} | report)))


def test_file_needs_nothing_beside_it(digits: Section, tmp_path: Path) -> None:
    write_report(
        tmp_path / "report.html", Report(title="Digits", sections=[digits, digits], tables=[compare([digits])])
    )
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    seen = Page(html)
    links = [value or "" for name, value in seen.attributes if name in ("src", "href", "xlink:href")]
    own_ids = [value for name, value in seen.attributes if name == "id"]
    assert "://" not in html
    assert not {"script", "link", "iframe", "object"} & set(seen.tags)
    assert len(links) > 10
    assert all(link.startswith("data:image/png;base64,") or link[1:] in own_ids for link in links)
    assert len(own_ids) == len(set(own_ids))
    assert not re.search(r"url\((?!#)|@import", html)
    assert all(reference in own_ids for reference in re.findall(r"url\(#([^)]+)\)", html))


def test_same_report_has_the_same_bytes(digits: Section) -> None:
    report = Report(title="Digits", sections=[digits])
    assert render(report) == render(report)


def test_one_picture_per_image_shown(digits: Section) -> None:
    shown = sum(len(rows.rows) for rows in digits.examples)
    assert [len(rows.rows) for rows in digits.examples] == [5, 5, 5]
    assert page(digits).tags.count("img") == shown


def test_numbers_agree_with_metrics(digits: Section) -> None:
    normal, novel = digits.normal_novelty, digits.novel
    expected = {
        "AUROC": metrics.auroc(normal, novel),
        FPR95: metrics.fpr95(normal, novel, positive="novel"),
        "FPR95, normal positive": metrics.fpr95(normal, novel, positive="normal"),
        "AUPR, novel positive": metrics.aupr_out(normal, novel),
        "AUPR, normal positive": metrics.aupr_in(normal, novel),
        PROMISED: 0.05,
        FALSE_ALARMS: np.mean(normal > digits.threshold),
        RECALL: np.mean(novel > digits.threshold),
    }
    seen = page(digits)
    assert dict(digits.metrics) == pytest.approx(expected)
    assert seen.row("threshold")[1] == f"{digits.threshold:.4g}"
    for name, value in expected.items():
        assert seen.row(name)[1] == f"{value:.4f}"


def test_cards_hold_the_headline_against_the_promise(digits: Section) -> None:
    text = page(digits).text
    assert f"{digits.metrics['AUROC']:.3f}" in text
    assert f"{100 * digits.metrics[RECALL]:.1f}%" in text
    noisy = section(normal_novelty=np.linspace(0, 1, 1000), threshold=0.8)
    broken = replace(noisy, metrics={FALSE_ALARMS: 0.2})
    kept = replace(noisy, threshold=0.96, metrics={FALSE_ALARMS: 0.04})
    chance = replace(noisy, threshold=0.945, metrics={FALSE_ALARMS: 0.055})
    assert "above the promised 5.0%" in page(broken).text
    assert "within the promised 5.0%" in page(kept).text
    assert "consistent with the promised 5.0%" in page(chance).text


def test_rows_are_scored_once_and_described(plain: Section) -> None:
    rng = np.random.default_rng(0)
    detector = Distance().fit(rng.normal(size=(100, 2)))
    made = section_from(detector, Sample(rng.normal(size=(50, 2))), Sample(rng.normal(size=(7, 2))))
    assert detector.calls == [50, 7]
    assert made.description == "Distance to the mean of the normal rows."
    assert (made.name, made.threshold, made.alpha) == ("Distance", detector.threshold_, 0.05)
    assert made.parameters == {"alpha": 0.05, "image_shape": None}
    assert dict(made.history) == detector.history_


def test_examples_are_the_most_novel_rows_and_the_worst_mistakes(plain: Section) -> None:
    most_novel, false_alarms, missed = plain.examples
    pooled = np.concatenate([plain.normal_novelty, plain.novel])
    flagged_normal = plain.normal_novelty[plain.normal_novelty > plain.threshold]
    passed_novel = plain.novel[plain.novel <= plain.threshold]
    assert most_novel.novelty.tolist() == sorted(pooled, reverse=True)[:4]
    assert false_alarms.novelty.tolist() == sorted(flagged_normal, reverse=True)[:4]
    assert missed.novelty.tolist() == sorted(passed_novel)[:4]
    assert set(false_alarms.truth or []) == {"normal"}
    assert set(missed.truth or []) == {"novel"}
    kind, row = str(most_novel.index[0]).split()
    assert (kind, plain.novel[int(row)]) == ("novel", most_novel.novelty[0])


def test_examples_have_conformal_p_values(plain: Section) -> None:
    assert plain.calibration_novelty is not None
    for shown in plain.examples:
        assert shown.p_value is not None
        assert shown.p_value.tolist() == p_values(plain.calibration_novelty, shown.novelty).tolist()
    assert f"{plain.examples[0].p_value[0]:.2g}" in page(plain).text  # type: ignore[index]


def test_classifier_shows_what_it_called_each_row() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["width", "height"], index=range(100, 130))
    classifier = Classifier().fit(rng.normal(size=(100, 2)))
    labels = pd.Series(["left"] * 30, index=frame.index)
    made = section_from(classifier, Sample(frame, labels=labels), Sample(frame + 9))
    shown, asked = made.examples[0], page(made)
    assert shown.predicted == ["unknown"] * 12
    assert shown.feature_names == ["width", "height"]
    assert "predicted" in asked.row("row")


def test_own_rule_promises_nothing() -> None:
    class Own(Distance):
        def get_params(self, deep: bool = True) -> dict[str, Any]:
            return {"alpha": 0.05, "rule": "own"}

    rng = np.random.default_rng(0)
    made = section_from(Own().fit(rng.normal(size=(50, 2))), Sample(rng.normal(size=(9, 2))), Sample(np.ones((2, 2))))
    assert made.alpha is None
    assert PROMISED not in made.metrics
    assert "no rate was promised" in page(made).text


@pytest.mark.parametrize("novel", [None, Sample(np.empty((0, 3)))])
def test_unlabelled_rows_have_flags_but_no_accuracy(novel: Sample | None) -> None:
    rng = np.random.default_rng(0)
    detector = Distance().fit(rng.normal(size=(200, 3)))
    made = section_from(detector, Sample(rng.normal(size=(60, 3))), novel)
    seen = page(made)
    flagged = int((made.normal_novelty > made.threshold).sum())
    assert made.metrics == {FLAGGED: flagged / 60, PROMISED: 0.05}
    assert made.examples[0].truth is None
    assert "ROC curve" not in seen.text
    assert "held-out normal (100 rows)" in seen.text
    assert seen.text.count("Most novel rows") == 1


def test_everything_a_user_writes_is_escaped() -> None:
    texts = examples(title=ATTACK, rows=[ATTACK, "b"], index=[ATTACK, 1], truth=[ATTACK, 1], predicted=[ATTACK, 2])
    features = examples(rows=np.ones((2, 1)), feature_names=[ATTACK])
    images = examples(rows=np.ones((2, 4, 4)), index=[f'"{ATTACK}', 1], truth=[ATTACK, 1])
    hostile = section(
        name=ATTACK,
        description=ATTACK,
        parameters={ATTACK: ATTACK, "object": [ATTACK]},
        metrics={ATTACK: 0.5},
        history={ATTACK: [1.0, 2.0], "$_{": [2.0, 1.0], "_hidden": [1.0, 1.0]},
        examples=[texts, features, images],
    )
    table = SummaryTable(title=ATTACK, columns=[ATTACK], rows={ATTACK: [0.5]}, note=ATTACK)
    report = Report(title=ATTACK, summary=ATTACK, sections=[hostile] * 2, tables=[table], facts={ATTACK: ATTACK})
    html = render(report)
    seen = Page(html)
    assert "<script" not in html
    assert "script" not in seen.tags
    assert seen.text.count(ATTACK) >= 30
    assert "$_{" in seen.text
    assert "_hidden" in seen.text


def test_failure_leaves_the_old_file(tmp_path: Path, plain: Section) -> None:
    path = tmp_path / "report.html"
    write_report(path, Report(title="first", sections=[plain]))
    before = path.read_bytes()

    class Unprintable:
        def __repr__(self) -> str:
            raise RuntimeError("no words for it")

    with pytest.raises(RuntimeError, match="no words"):
        write_report(path, Report(title="second", sections=[plain], facts={"x": Unprintable()}))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    write_report(path, Report(title="third", sections=[plain]))
    assert b"third" in path.read_bytes()


def test_global_state_of_matplotlib_is_untouched(plain: Section) -> None:
    before = dict(matplotlib.rcParams)
    render(Report(title="A run", sections=[plain]))
    assert dict(matplotlib.rcParams) == before
    code = "import sys, offmap.report; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], check=False, env={"PYTHONPATH": ":".join(sys.path)}).returncode
        == 0
    )


@pytest.mark.parametrize("history", [{}, {"loss": []}])
def test_no_training_no_curves(history: dict[str, list[float]]) -> None:
    assert "Training" not in page(section(history=history)).text


@pytest.mark.parametrize(
    "history",
    [
        {"loss": [0.5]},
        {"loss": [np.inf, np.nan]},
        {"a": [1e-6, 1e3], "b": [2.0]},
        {str(k): [1.0, k] for k in range(25)},
    ],
)
def test_each_term_has_a_line_and_an_entry(history: dict[str, list[float]]) -> None:
    html = render(Report(title="A run", sections=[section(history=history)]))
    training = html[html.index("<h4>Training") :]
    legend = training[: training.index("</ul>")]
    assert re.findall(r"</svg>([^<]*)</li>", legend) == list(history)


SCORES = arrays(
    np.float64,
    st.integers(1, 40),
    elements=st.floats(-1e30, 1e30, allow_nan=False) | st.sampled_from([np.inf, -np.inf, 0.0]),
)


@settings(deadline=None, max_examples=200)
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
    far = view_of([bulk, bulk + 1e6], 2.0)
    assert (light.low, light.high) == (bulk.min(), bulk.max() + 3)
    assert cut.high < 10
    assert logarithmic.log
    assert far.high < 100
    assert far.beyond(bulk + 1e6) == 1000


def test_cut_axis_says_what_lies_beyond() -> None:
    tail = np.append(np.linspace(0, 1, 500), [1e9, np.inf])
    text = page(section(normal_novelty=tail, novel_novelty=np.linspace(1, 3, 50))).text
    assert "The axis is cut: 2 of 502 normal rows lie beyond its ends" in text
    assert "1 of them infinite" in text
    assert "The axis is cut" not in page(section()).text


@pytest.mark.parametrize("scores", [np.full(9, np.inf), np.full(9, -np.inf), np.full(9, 3.0), np.array([1e30])])
@pytest.mark.parametrize("limit", [3.0, np.inf])
def test_extreme_scores_are_drawn(scores: NDArray[np.float64], limit: float) -> None:
    seen = page(section(normal_novelty=scores, novel_novelty=scores, threshold=limit))
    assert seen.row("threshold")[1] == ("∞" if np.isinf(limit) else "3")


@settings(deadline=None)
@given(normal=SCORES, novel=SCORES)
def test_roc_curve_encloses_the_area_of_the_metric(normal: NDArray[np.float64], novel: NDArray[np.float64]) -> None:
    false_alarms, recall = roc_curve(normal, novel)
    assert np.trapezoid(recall, false_alarms) == pytest.approx(metrics.auroc(normal, novel))


def test_deviations_count_standard_deviations() -> None:
    shown = examples(
        rows=np.array([[1.0, 5.0, 7.0], [3.0, 5.0, 8.0]]),
        normal_mean=np.array([1.0, 3.0, 7.0]),
        normal_sd=np.array([0.5, 1.0, 0.0]),
    )
    deviations = deviations_of(shown)
    assert deviations is not None
    assert deviations.tolist() == [[0.0, 2.0, 0.0], [4.0, 2.0, np.inf]]
    assert page(section(examples=[shown])).row("1")[-3:] == ["3 ▲", "5 ▲", "8 ▲"]


def test_wide_rows_show_the_features_that_deviate() -> None:
    rows = np.zeros((2, 40))
    rows[0, 31], rows[1, 8] = -9.0, 5.0
    shown = examples(rows=rows, normal_mean=np.zeros(40), normal_sd=np.ones(40))
    seen = page(section(examples=[shown]))
    assert {"feature 8", "feature 31"} <= set(seen.row("row"))
    assert "-9 ▼" in seen.row("0")
    assert "7 of 40 features" in seen.text


def test_intensities_become_bytes() -> None:
    whole = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    assert as_bytes(whole) is whole
    assert as_bytes(np.array([[[0.0, 0.5, 0.2]]])).tolist() == [[[0, 128, 51]]]
    assert as_bytes(np.array([[[-1.0, 0.0, 1.0]]])).tolist() == [[[0, 128, 255]]]
    assert as_bytes(np.zeros((1, 2, 2))).tolist() == [[[0, 0], [0, 0]]]


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 5, 1), (2, 3, 5, 3), (2, 3, 5, 4), (2, 300, 500, 3)])
def test_images_of_every_shape_are_shown(shape: tuple[int, ...]) -> None:
    shown = examples(rows=np.random.default_rng(0).random(shape))
    assert page(section(examples=[shown])).tags.count("img") == 2


def test_comparison_marks_the_better_end() -> None:
    low, high = section(name="low", metrics={"AUROC": 0.6, FPR95: 0.7}), section(name="high", metrics={"AUROC": 0.8})
    other = section(name="other", metrics={"AUROC": 0.7, FPR95: 0.2, "seconds": 3.0})
    table = compare([low, high, other])
    html = render(Report(title="A run", sections=[low, high, other], tables=[table]))
    assert re.findall(r'<td class="best">([^<]*)</td>', html) == ["0.8000", "0.2000"]
    assert Page(html).row("high")[1:] == ["0.8000", "–", "–"]
    assert "Best by AUROC: <b>high</b>" in html


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: section(normal_novelty=np.array([1.0, np.nan])), "normal_novelty must not hold NaN, got 1"),
        (lambda: section(normal_novelty=np.empty(0)), "normal_novelty must hold at least one row"),
        (lambda: section(novel_novelty=np.ones((2, 2))), r"novel_novelty must be one-dimensional, got shape \(2, 2\)"),
        (lambda: examples(p_value=np.ones(3)), r"p_value must have one entry per row \(2\), got 3"),
        (lambda: examples(rows=np.ones(2)), r"rows must be images .* got an array of \(2,\)"),
        (lambda: examples(rows=np.ones((2, 3)), feature_names=["a"]), r"feature_names must have one .* \(3\), got 1"),
        (lambda: Sample(np.ones((3, 1)), labels=[1]), r"labels must have one entry per row of X \(3\), got 1"),
        (lambda: SummaryTable(title="t", columns=["a"], rows={"m": []}), r"rows\['m'\] must have one value per column"),
    ],
)
def test_bad_input_is_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
