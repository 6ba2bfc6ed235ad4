"""Sections: the numbers are right, and the rows shown are the ones to look at."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from offmap import Guarded, metrics
from offmap.calibration import p_values
from offmap.report import Sample, Section, SummaryTable, section_of
from offmap.report.cards import cards
from offmap.report.curves import operating_point
from offmap.report.gallery import gallery
from offmap.report.markup import percent
from offmap.report.measures import rate_interval, title_of
from offmap.verdict import Verdict
from tests.report.parts import Classifier, Distance, examples, page, section

VERDICT = Verdict(novelty=np.array([1.0, 2.0]), novel=np.array([False, True]))


def test_numbers_agree_with_metrics(digits: Section) -> None:
    normal, novel = digits.normal_novelty, digits.novel
    expected = {
        "auroc": metrics.auroc(normal, novel),
        "fpr95_novel": metrics.fpr95(normal, novel, positive="novel"),
        "fpr95_normal": metrics.fpr95(normal, novel, positive="normal"),
        "aupr_out": metrics.aupr_out(normal, novel),
        "aupr_in": metrics.aupr_in(normal, novel),
        "promised_rate": 0.05,
        "false_alarm_rate": np.mean(normal > digits.threshold),
        "recall": np.mean(novel > digits.threshold),
    }
    seen = page(digits)
    assert dict(digits.metrics) == pytest.approx(expected)
    assert seen.row("threshold")[1] == f"{digits.threshold:.4g}"
    for name, value in expected.items():
        assert seen.row(title_of(name))[1] == f"{value:.4f}"


def test_cards_hold_the_headline_against_the_promise(digits: Section) -> None:
    text = page(digits).text
    assert f"{digits.metrics['auroc']:.3f}" in text
    assert f"{100 * digits.metrics['recall']:.1f}%" in text
    noisy = section(normal_novelty=np.linspace(0, 1, 1000), threshold=0.8)
    broken = replace(noisy, metrics={"false_alarm_rate": 0.2})
    kept = replace(noisy, threshold=0.96, metrics={"false_alarm_rate": 0.04})
    chance = replace(noisy, threshold=0.945, metrics={"false_alarm_rate": 0.055})
    assert "above the promised 5.0%" in cards(broken)
    assert "within the promised 5.0%" in cards(kept)
    assert "consistent with the promised 5.0%" in cards(chance)


def test_rows_are_scored_once_and_described(plain: Section) -> None:
    rng = np.random.default_rng(0)
    detector = Distance().fit(rng.normal(size=(100, 2)))
    samples = (Sample.assessed(detector, X) for X in (rng.normal(size=(50, 2)), rng.normal(size=(7, 2))))
    made = section_of(detector, *samples)
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
    normal, novel = Sample.assessed(classifier, frame, labels=labels), Sample.assessed(classifier, frame + 9)
    made = section_of(classifier, normal, novel, shown=60)
    shown, asked = made.examples[0], page(made)
    assert shown.truth == ["novel"] * 30 + ["left"] * 30
    assert shown.predicted is not None
    assert shown.predicted[:30] == ["unknown"] * 30
    assert "left" in shown.predicted
    assert "right" in shown.predicted
    assert shown.feature_names == ["width", "height"]
    assert "predicted" in asked.row("row")


def test_own_rule_promises_nothing() -> None:
    class Own(Distance):
        promised_rate = None

    rng = np.random.default_rng(0)
    own = Own().fit(rng.normal(size=(50, 2)))
    made = section_of(own, *(Sample.assessed(own, X) for X in (rng.normal(size=(9, 2)), np.ones((2, 2)))))
    assert made.alpha is None
    assert "promised_rate" not in made.metrics
    assert "no rate was promised" in page(made).text


@pytest.mark.parametrize("empty", [True, False])
def test_unlabelled_rows_have_flags_but_no_accuracy(empty: bool) -> None:
    rng = np.random.default_rng(0)
    detector = Distance().fit(rng.normal(size=(200, 3)))
    novel = Sample.assessed(detector, np.empty((0, 3))) if empty else None
    made = section_of(detector, Sample.assessed(detector, rng.normal(size=(60, 3))), novel)
    seen = page(made)
    flagged = int((made.normal_novelty > made.threshold).sum())
    assert made.metrics == {"flagged_rate": flagged / 60, "promised_rate": 0.05}
    assert made.examples[0].truth is None
    assert "ROC curve" not in seen.text
    assert "held-out normal (100 rows)" in seen.text
    assert seen.text.count("Most novel rows") == 1


def test_a_row_at_the_threshold_is_not_flagged_anywhere() -> None:
    scores = {"normal_novelty": np.array([0.0, 1.0, 1.0, 2.0]), "novel_novelty": np.array([1.0, 3.0])}
    tied = section(threshold=1.0, **scores, metrics={"flagged_rate": 0.25})
    assert tied.normal_flags.sum() == 1
    assert operating_point(tied) == (0.25, 0.5)
    assert '<div class="value">1</div>' in cards(tied)
    drawn = gallery(examples(rows=np.zeros((2, 4, 4)), novelty=np.array([1.0, 1.0])), threshold=1.0)
    assert "flagged" not in drawn
    for shown in (["one text", "another"], np.zeros((2, 3))):
        drawn = gallery(examples(rows=shown, novelty=np.array([1.0, 1.5])), threshold=1.0)
        assert (drawn.count("<td>no</td>"), drawn.count("<td>yes</td>")) == (1, 1)


def test_decisions_by_class_are_counted_drawn_and_told_instead_of_those_by_the_threshold() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 200)
    spread, centre = np.where(labels, 3, 1)[:, None], labels[:, None] * [12, 0]
    rows, normal = (rng.normal(size=(400, 2)) * spread + centre for _ in range(2))
    model = Guarded(LogisticRegression(), novelty_score="mahalanobis", by_class="predicted", random_state=0)
    samples = [Sample.assessed(model.fit(rows, labels), X) for X in (normal, rng.normal(size=(60, 2)) * 2.5)]
    made, (false_alarms, found) = section_of(model, *samples), (sample.verdict.novel for sample in samples)
    assert (false_alarms != (made.normal_novelty > made.threshold)).any()
    assert made.metrics["false_alarm_rate"] == false_alarms.mean() == made.normal_flags.mean()
    assert operating_point(made) == (false_alarms.mean(), found.mean())
    low, high = rate_interval(int(false_alarms.sum()), 400)
    seen = page(made)
    assert f"95% interval {percent(low)} to {percent(high)}" in seen.text
    assert f"p-values by class: {percent(found.mean())} found, {percent(false_alarms.mean())}" in seen.text
    assert "of all classes; p-values by class decide" in seen.text
    assert "does not decide: rows are flagged by their p-value by class" in seen.row("threshold")[2]
    mistakes = made.examples[1]
    assert mistakes.flagged is not None
    assert mistakes.flagged.all()
    assert "<td>no</td>" not in gallery(mistakes, made.threshold)
    unknown = section_of(model, samples[0])
    assert f'<div class="value">{false_alarms.sum()}</div>' in cards(unknown)


def test_given_decisions_mark_pictures_whatever_the_novelty() -> None:
    shown = examples(rows=np.zeros((2, 4, 4)), novelty=np.array([1.0, 2.0]), flagged=np.array([True, False]))
    drawn = gallery(shown, threshold=1.5)
    assert [tile in drawn for tile in ('"tile flagged"', '"tile"')] == [True, True]
    assert drawn.index('"tile flagged"') < drawn.index('"tile"')


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: section(normal_novelty=np.array([1.0, np.nan])), "normal_novelty must not hold NaN, got 1"),
        (lambda: section(normal_novelty=np.empty(0)), "normal_novelty must hold at least one row"),
        (lambda: section(novel_novelty=np.ones((2, 2))), r"novel_novelty must be one-dimensional, got shape \(2, 2\)"),
        (lambda: section(normal_flagged=np.ones(3, bool)), r"normal_flagged must have one entry per row \(60\), got 3"),
        (lambda: examples(p_value=np.ones(3)), r"p_value must have one entry per row \(2\), got 3"),
        (lambda: examples(rows=np.ones(2)), r"rows must be images .* got an array of \(2,\)"),
        (lambda: examples(rows=np.ones((2, 3)), feature_names=["a"]), r"feature_names must have one .* \(3\), got 1"),
        (lambda: Sample(VERDICT, np.ones((2, 1)), labels=[1]), r"labels must have one entry per row \(2\), got 1"),
        (lambda: Sample(VERDICT, np.ones((3, 1))), r"shown must have one entry per row \(2\), got 3"),
        (lambda: SummaryTable(title="t", columns=["a"], rows={"m": []}), r"rows\['m'\] must have one value per column"),
    ],
)
def test_bad_input_is_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_no_promise_is_neither_kept_nor_broken() -> None:
    unpromised = replace(section(normal_novelty=np.linspace(0, 1, 100), threshold=0.8), alpha=None)
    made = cards(replace(unpromised, metrics={"false_alarm_rate": 0.2}))
    assert '<div class="verdict">no rate was promised</div>' in made
    assert "verdict good" not in made
