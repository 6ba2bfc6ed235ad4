"""Semi-online p-values, the jumper martingale, and the monitor that plays one against the other."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from offmap import tensorfile
from offmap.density import ECODDetector
from offmap.monitor import Drift, DriftMonitor, Jumper, fold_novelty, semi_online_p_values
from offmap.monitor.drift_monitor import change_row


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 999), older=st.integers(1, 20), rows=st.integers(1, 30), ties=st.booleans())
def test_p_values_are_ranks_among_all_earlier_rows(seed: int, older: int, rows: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    past, stream, draws = rng.normal(size=(3, older)), rng.normal(size=(3, rows)), rng.random((3, rows))
    if ties:
        past, stream = past.round(), stream.round()
    found = semi_online_p_values(np.sort(past), stream, draws)
    for run in range(3):
        seen = list(past[run])
        for t, s in enumerate(stream[run]):
            greater, equal = sum(v > s for v in seen), sum(v == s for v in seen)
            assert found[run, t] == pytest.approx((greater + draws[run, t] * (1 + equal)) / (len(seen) + 1))
            seen.append(s)


def test_the_jumper_is_the_formula() -> None:
    p_values = np.random.default_rng(0).random((2, 50)) ** 2
    _, path = Jumper.start(2).play(p_values, jump=0.1)
    for run in range(2):
        capital = {-1: 1 / 3, 0: 1 / 3, 1: 1 / 3}
        for t, p in enumerate(p_values[run]):
            total = sum(capital.values())
            capital = {e: ((1 - 0.1) * c + 0.1 * total / 3) * (1 + e * (p - 0.5)) for e, c in capital.items()}
            assert path[run, t] == pytest.approx(np.log(sum(capital.values())))


def test_p_values_of_exchangeable_rows_are_uniform_with_few_calibration_rows_and_ties() -> None:
    rng = np.random.default_rng(0)
    past, stream = np.sort(rng.normal(size=(400, 10)).round(1)), rng.normal(size=(400, 25)).round(1)
    p_values = semi_online_p_values(past, stream, rng.random(stream.shape))
    assert kstest(p_values.ravel(), "uniform").pvalue > 0.01


def test_few_null_runs_alarm_and_a_shift_is_found() -> None:
    """At a level of 10 at most a tenth of the runs may; p-values against 30 fixed rows would alarm in most."""
    rng = np.random.default_rng(0)
    past, stream = np.sort(rng.normal(size=(300, 30))), rng.normal(size=(300, 1000))
    draws = rng.random(stream.shape)
    _, path = Jumper.start(300).play(semi_online_p_values(past, stream, draws), jump=0.01)
    assert (path.max(axis=1) >= np.log(10)).mean() <= 0.13
    stream[:, 500:] += 1.0
    _, path = Jumper.start(300).play(semi_online_p_values(past, stream, draws), jump=0.01)
    assert np.median((path >= np.log(10)).argmax(axis=1)) < 700


def test_batches_and_a_restart_change_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    calibration, stream = rng.normal(size=100), rng.normal(size=700).round(1) + np.repeat([0.0, 1.5], 350)
    whole = DriftMonitor(random_state=3).fit(calibration)
    whole.update(stream)
    part = DriftMonitor(random_state=3).fit(calibration)
    for start in range(0, 700, 70):
        part.update(stream[start : start + 70])
        part.save(tmp_path / "state.safetensors")
        part = DriftMonitor.load(tmp_path / "state.safetensors")
    np.testing.assert_allclose(part.path_, whole.path_, rtol=1e-12)
    assert part.drift.alarm
    assert part.drift.to_dict() == pytest.approx(whole.drift.to_dict())
    assert part.drift.since is not None
    assert abs(part.drift.since - 350) < 60
    assert part.drift.alarm_row is not None
    assert part.drift.alarm_row == np.flatnonzero(whole.path_ >= np.log(100))[0] > part.drift.since
    assert "Recalibrate" in str(part.drift)
    assert "no change in 0 rows" in str(DriftMonitor().fit(calibration).drift)


def test_less_novel_rows_are_a_change_too() -> None:
    rng = np.random.default_rng(0)
    monitor = DriftMonitor(random_state=0).fit(rng.normal(size=300))
    assert monitor.update(rng.normal(-1, size=500)).alarm


@pytest.mark.parametrize(
    ("values", "message"),
    [([], "no values"), ([[1.0]], "one number per row"), ([1.0, np.nan], "NaN at row 1")],
)
def test_bad_novelty_is_named(values: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DriftMonitor().fit(values)


def test_another_file_is_refused(tmp_path: Path) -> None:
    tensorfile.write(tmp_path / "other.safetensors", {"schema": 1})
    with pytest.raises(ValueError, match="does not hold the state of a DriftMonitor"):
        DriftMonitor.load(tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="level must be a number at least 1"):
        DriftMonitor(level=0.5).fit([1.0])


@pytest.mark.parametrize("calibration", ["cv", 0.5])
def test_a_state_belongs_to_its_own_model(tmp_path: Path, calibration: Any) -> None:
    rng = np.random.default_rng(0)
    own, other = (ECODDetector(calibration=calibration, random_state=0).fit(rng.normal(size=(100, 3))) for _ in "ab")
    monitor = DriftMonitor(random_state=0).fit(own.calibration_novelty_, folds=fold_novelty(own))
    monitor.update(own.novelty(rng.normal(size=(30, 3))))
    monitor.save(tmp_path / "state")
    for each in (monitor, DriftMonitor.load(tmp_path / "state")):
        assert each.started_with(own.calibration_novelty_, fold_novelty(own))
        assert not each.started_with(other.calibration_novelty_, fold_novelty(other))


def test_a_recalibrated_model_is_known_by_the_rows_that_recalibrated_it() -> None:
    rng = np.random.default_rng(0)
    folds = ECODDetector(calibration="cv", random_state=0).fit(rng.normal(size=(100, 3)))
    model = folds.recalibrate(rng.normal(size=(90, 3)))
    monitor = DriftMonitor(random_state=0).fit(model.calibration_novelty_)
    assert monitor.started_with(model.calibration_novelty_, fold_novelty(model))


@pytest.mark.parametrize(
    "edited", [{"schema": np.zeros(3)}, {"format": np.zeros(2)}, {"parameters": {"level": np.zeros(2)}}]
)
def test_a_file_with_arrays_where_numbers_belong_is_refused(tmp_path: Path, edited: dict[str, Any]) -> None:
    monitor = DriftMonitor(random_state=0).fit(np.arange(50.0))
    monitor.save(tmp_path / "state")
    content = tensorfile.read(tmp_path / "state")
    assert isinstance(content, dict)
    tensorfile.write(tmp_path / "state", content | edited)
    with pytest.raises(ValueError, match="DriftMonitor"):
        DriftMonitor.load(tmp_path / "state")


def test_the_change_is_after_the_last_of_equal_minima() -> None:
    assert change_row(np.array([-0.4, 0.1, -0.4, 2.0, 5.0])) == 3


def test_the_advice_counts_the_rows_since_the_change() -> None:
    drift = Drift(rows=600, log_capital=7.1, level=100.0, alarm_row=432, since=301, calibration_rows=500)
    assert "(299 so far; it was calibrated on 500)" in drift.advice


def test_an_alarm_inside_a_batch_stays_raised_though_the_capital_falls_again() -> None:
    rng = np.random.default_rng(0)
    calibration = rng.normal(size=500)
    # A burst that just raises the alarm; among 3,000 rows after it the capital is lost again.
    stream = np.concatenate([rng.normal(2, 1, size=30), rng.normal(size=3000)])
    whole, parts = (DriftMonitor(random_state=0).fit(calibration) for _ in range(2))
    whole.update(stream)
    for part in np.split(stream, [10, 20, 30, 1000]):
        parts.update(part)
    assert whole.drift.alarm
    assert whole.drift.log_capital < np.log(100)
    assert whole.drift == parts.drift
    assert whole.alarm_row_ == int((whole.path_ >= np.log(100)).argmax())
