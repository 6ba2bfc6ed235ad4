"""Rows judged together: the tables that measure it, and what their stored results must keep to."""

import numpy as np
import pytest

from offmap.calibration import p_values
from offmap.openset import MSPClassifier
from offmap_bench.open_set_scoring import OpenSetTask
from offmap_bench.places import RESULTS
from offmap_bench.samples import Samples, read_samples
from offmap_bench.tables import judged_together
from offmap_bench.tables.open_intents_together import ALARMS, JUDGED, METRICS, TOGETHER, both_ways


def stored(table: object) -> Samples:
    return read_samples(table, "cpu", RESULTS)[0]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def task() -> OpenSetTask:
    """Two known classes and one unknown one, which overlap in the plane."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2], 200))
    X = rng.normal(size=(600, 2)) + 4.0 * np.array([[0, 0], [1, 0], [0.5, 0.8]])[y]
    known, part = y < 2, np.arange(600) % 3
    return OpenSetTask(
        *(X[known & (part == 0)], y[known & (part == 0)], X[known & (part == 1)]),
        *(X[(part == 2) | ~known], y[(part == 2) | ~known], np.array([0, 1])),
    )


def test_a_model_is_scored_one_by_one_and_together(task: OpenSetTask) -> None:
    method = MSPClassifier(rule="own", calibration=0.0, epochs=5, random_state=0)
    found = both_ways(method, task)
    assert set(found) == set(METRICS)
    assert found["auroc" + TOGETHER] > found["auroc"]
    novelty, is_known = method.novelty(task.X_test), np.isin(task.y_test, task.known)
    p_value = p_values(np.sort(method.novelty(task.X_dev)), novelty)
    assert found[ALARMS] == pytest.approx(np.mean(p_value[is_known] <= 0.05))


@pytest.mark.parametrize("column", judged_together.JUDGED.columns[:2])
def test_no_row_is_in_two_parts_of_a_batch(column: str) -> None:
    batch = judged_together.batch(column, 0)
    rows = [row.tobytes() for part in (batch.train, batch.known, batch.X) for row in part]
    assert len(set(rows)) > 0.99 * len(rows)
    assert len(batch.novel) == len(batch.X)
    assert (batch.novel.sum() == 15) == (column == judged_together.ONE_OF_EACH)


@pytest.mark.parametrize("column", JUDGED.columns)
def test_stored_rows_judged_together_are_found_better_by_every_score(column: str) -> None:
    samples = stored(JUDGED)
    for row in JUDGED.rows:
        alone, together = (samples[row, column, f"auroc{end}"] for end in ("", TOGETHER))
        assert len(together.values) >= 10
        assert together.mean > alone.mean
        assert 0.03 < samples[row, column, ALARMS + TOGETHER].mean < 0.07


def test_stored_ans_leads_plain_scores_when_rows_are_judged_together() -> None:
    samples = stored(JUDGED)
    means = {
        row: np.mean([samples[row, column, f"f1, suggested rate{TOGETHER}"].mean for column in JUDGED.columns])
        for row in JUDGED.rows
    }
    assert means["ANS"] > max(means["nearest neighbour"], means["max logit"]) + 0.005


def test_stored_new_classes_gain_and_single_rows_of_new_classes_lose() -> None:
    samples = stored(judged_together.JUDGED)
    for row in judged_together.JUDGED.rows:
        for column, sign in ((judged_together.NEW_DIGITS, 1), (judged_together.ONE_OF_EACH, -1)):
            alone, together = (samples[row, column, f"auroc{end}"].mean for end in ("", TOGETHER))
            assert sign * (together - alone) > 0
        for column in judged_together.JUDGED.columns:
            assert samples[row, column, f"false alarms{TOGETHER}"].mean < 0.07
