"""The promise over rounds: audit rows keep the rate, rows that were rejected first do not."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from offmap.loop import OpenWorld
from offmap.loop.promise import calibrate, measured, order_statistics, rows_needed
from offmap.openset import AnalyticClassifier
from tests.loop.worlds import blobs, classifier, taught


@given(rows=st.integers(1, 300), share=st.floats(0, 1))
def test_the_interval_is_that_of_clopper_and_pearson(rows: int, share: float) -> None:
    alarms = round(share * rows)
    found = measured(alarms, rows)
    assert found is not None
    assert found.rate == alarms / rows
    # At the ends of the interval, what was seen is just as rare as the confidence says.
    assert found.low == 0 or binom.sf(alarms - 1, rows, found.low) == pytest.approx(0.025, abs=1e-6)
    assert found.high == 1 or binom.cdf(alarms, rows, found.high) == pytest.approx(0.025, abs=1e-6)


@given(alpha=st.floats(0.01, 0.5))
def test_the_rows_needed_are_the_fewest_that_allow_the_rate(alpha: float) -> None:
    n = rows_needed(alpha)
    assert 1 / (n + 1) <= alpha + 1e-9
    assert n == 0 or 1 / n > alpha - 1e-9


@given(values=st.lists(st.floats(-9, 9), min_size=1, max_size=60), count=st.integers(0, 20))
def test_order_statistics_are_values_of_the_sample_spread_as_it_is(values: list[float], count: int) -> None:
    found = order_statistics(np.array(values), count)
    assert len(found) == count
    assert set(found) <= set(values)
    for value in found:
        assert abs(np.mean(found <= value) - np.mean(np.array(values) <= value)) <= 1 / count + 1 / len(values) + (
            np.mean(np.array(values) == value)
        )


def drawn(centres: Any, rng: np.random.Generator, labels: list[int], rows: int) -> tuple[Any, Any]:
    y = np.repeat(labels, rows)
    return centres[y] + rng.normal(size=(len(y), centres.shape[1])), y


def test_audit_rows_keep_the_rate_where_rows_that_were_rejected_first_do_not() -> None:
    """New classes come in by their unusual rows; audit rows are drawn from all of theirs."""
    alarms: dict[str, list[float]] = {"audit": [], "naive": []}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        draw = partial(drawn, 3 * rng.normal(size=(8, 12)), rng)

        model = AnalyticClassifier(width=150, alpha=0.1, calibration=0.5, random_state=0).fit(*draw([0, 1, 2, 3], 60))
        X, y = draw([4, 5, 6, 7], 12)
        model.partial_fit(X, y, calibrate=False)
        fresh, _ = draw(list(range(8)), 100)
        alarms["naive"].append(float(np.mean(model.assess(fresh).novel)))
        audit = draw(list(range(8)), 15)
        said = calibrate(model, *audit)
        assert (said.audits, said.uncovered, said.holds) == (120, 0, True)
        alarms["audit"].append(float(np.mean(model.assess(fresh).novel)))
    assert abs(np.mean(alarms["audit"]) - 0.1) < 0.03
    # 0.148, with a standard error of 0.008.
    assert np.mean(alarms["naive"]) > 0.13


def test_the_status_says_what_is_promised_and_what_it_needs(tmp_path: Path) -> None:
    with taught(tmp_path / "w") as world:
        assert world.status().promise.startswith("at most 10.0% false alarms")
        world.observe(blobs([0, 1, 2, 3], 30, seed=1)[0], ids=range(120))
        truth = blobs([0, 1, 2, 3], 30, seed=1)[1]
        group = max(world.groups(), key=lambda group: group.size)
        world.name(group.id, 3)
        world.learn()
        status = world.status()
        assert not status.promise_holds
        assert "not promised for 1 learnt class:" in status.promise
        assert status.audit_rows_needed >= 9
        world.observe(blobs([0, 1, 2, 3], 30, seed=2)[0], ids=range(200, 320))
        truth = np.concatenate([truth, np.zeros(80, int), blobs([0, 1, 2, 3], 30, seed=2)[1]])
        for row in world.audit(status.audit_rows_needed):
            world.label(row.id, int(truth[int(row.id)]))
        found = world.status().measured
        assert found is not None
        assert found.rows == status.audit_rows_needed
        assert f"on {found.rows} audit rows" in world.status().promise
        world.learn()
        assert world.status().promise_holds
        assert world.status().audit_rows_needed == 0


def test_audit_rows_that_train_keep_the_rate_as_those_that_do_not() -> None:
    alarms = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        draw = partial(drawn, 3 * rng.normal(size=(8, 12)), rng)
        model = AnalyticClassifier(width=150, alpha=0.1, calibration=0.5, random_state=0).fit(*draw([0, 1, 2, 3], 60))
        X, y = draw(list(range(8)), 15)
        model.partial_fit(X, y, calibrate=False)
        fresh, _ = draw(list(range(8)), 100)
        calibrate(model, X, y, [True] * len(X))
        alarms.append(float(np.mean(model.assess(fresh).novel)))
    assert abs(np.mean(alarms) - 0.1) < 0.03


def test_audit_rows_without_a_label_do_not_train(tmp_path: Path) -> None:
    with taught(tmp_path / "w") as world:
        world.observe(blobs([3], 30, seed=1)[0])
        audited = {row.id for row in world.audit(10)}
        assert len(audited) == 10
        assert {row.id for row in world.audit(12)} > audited
        world.name(world.groups()[0].id, 3)
        world.learn()
        learnt = {world.state.rows[number].id for number in world.state.taught if number in world.state.rows}
        assert learnt
        assert learnt.isdisjoint(audited)


def in_rounds(path: Path, seed: int) -> list[float]:
    """False alarms on fresh rows after each of three rounds in which a person names groups and labels audit rows."""
    rng = np.random.default_rng(seed)
    draw = partial(drawn, 2 * rng.normal(size=(8, 12)), rng)
    fresh, truth = draw(list(range(8)), 100)
    model = AnalyticClassifier(width=150, alpha=0.1, calibration=0.5, random_state=0)
    found = []
    with OpenWorld.create(path, classifier=model, review=0.5, seed=seed) as world:
        world.teach(*draw([0, 1, 2, 3], 40))
        for turn in range(3):
            X, y = draw(list(range(8)), 15)
            order = rng.permutation(len(y))
            labels = {f"{turn} {place}": int(y[row]) for place, row in enumerate(order)}
            world.observe(X[order], ids=list(labels))
            for row in world.audit(20):
                world.label(row.id, labels[str(row.id)])
            for group in world.groups():
                if group.rows[0] in labels:
                    world.name(group.id, labels[str(group.rows[0])])
            world.learn()
            learnt = np.isin(truth, world.classifier.classes_)
            found.append(float(np.mean(world.classifier.assess(fresh).novel[learnt])))
    return found


def test_the_mean_rate_from_the_second_round_on_is_kept_on_rows_that_the_world_has_never_seen(tmp_path: Path) -> None:
    alarms = np.array([in_rounds(tmp_path / str(seed), seed) for seed in range(8)])
    assert abs(alarms[:, 1:].mean() - 0.1) < 0.03


def test_a_taught_class_without_a_held_out_row_is_covered_by_those_of_the_others(tmp_path: Path) -> None:
    """Held-out rows are drawn from all rows alike, so they speak for a class that has none among them by chance."""
    X, y = blobs([0, 1, 2], 40)
    rare = np.flatnonzero(y == 2)[:3]
    kept = np.sort(np.concatenate([np.flatnonzero(y != 2), rare]))
    for seed in range(20):
        model = classifier(calibration=0.3, random_state=seed)
        with OpenWorld.create(tmp_path / str(seed), classifier=model, min_group=4) as world:
            world.teach(X[kept], y[kept])
            if 2 not in world.classifier.held_out_labels_:
                assert world.status().promise_holds
                world.observe(blobs([3], 15, seed=1)[0])
                world.name(world.groups()[0].id, 3)
                world.learn()
                assert world.status().promise == "not promised for 1 learnt class: label audit rows and learn again"
                return
    raise AssertionError("every split held a row of the rare class out")


def test_enough_audit_rows_cover_the_classes_of_lessons() -> None:
    rng = np.random.default_rng(0)
    draw = partial(drawn, 3 * rng.normal(size=(3, 12)), rng)
    model = AnalyticClassifier(width=150, alpha=0.1, calibration=0.5, random_state=0).fit(*draw([0, 1], 60))
    model.partial_fit(*draw([2], 60), calibrate=False)
    calibrate(model, *draw([0, 1, 2], 2))
    assert "does not cover" in model.promise_in_words
    calibrate(model, *draw([0, 1, 2], 20))
    assert "does not cover" not in model.promise_in_words
