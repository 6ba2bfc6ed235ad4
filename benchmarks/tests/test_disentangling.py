"""The table of swapped codes: the thesis's numbers, and that a run measures what it says."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from offmap.dependence.disentangle import GroupedAutoencoder
from offmap_bench.colour_digits import bundled_digits
from offmap_bench.digit_classifier import DigitClassifier
from offmap_bench.papers.total_correlation import PAGE
from offmap_bench.places import RESULTS
from offmap_bench.samples import read_samples
from offmap_bench.table import Table
from offmap_bench.tables import disentangling, disentangling_width
from offmap_bench.tables.disentangling import (
    ADVERSARY,
    ALONE,
    SWAPPED,
    WATCHED,
    draw_grid,
    fit_autoencoder,
    fitted,
    measure,
    shown,
)

TINY = {"images": 64, "tested": 40, "conv_channels": 2, "epochs": 1, "batch_size": 32}


@pytest.fixture(autouse=True)
def _bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disentangling, "colour_digits", bundled_digits)
    classifier = DigitClassifier().eval()
    pair = partial(bundled_digits, "test")
    monkeypatch.setattr(disentangling, "classifier_and_test", lambda count: (classifier, pair(count=count)))


def test_printed_numbers_stand_where_the_thesis_has_them() -> None:
    assert SWAPPED.printed["TC", ALONE, "acc_d"] == 92.70
    assert ADVERSARY.printed["TC", WATCHED, "res_l2"] == 43.04
    assert ADVERSARY.printed["DIIN", WATCHED, "acc_c"] == 97.45
    # The thesis's TC stands beside both widths of the style code.
    assert (len(SWAPPED.printed), len(ADVERSARY.printed)) == (6 + 3, 12)


def trials() -> dict[tuple[str, str, str], float]:
    """The means of the stored trials on validation images, by row, column and metric."""
    (table,) = disentangling_width.TABLES
    samples, _ = read_samples(table, "cpu", RESULTS)
    found = {key: sample for key, sample in samples.items() if sample.values}
    return {key: sample.mean for key, sample in found.items()}


def test_the_style_width_that_was_chosen_is_the_best_by_stored_trials() -> None:
    as_long = {key: v for key, v in trials().items() if key[2] == "acc_d" and key[1] != "five times the passes"}
    best = max(as_long, key=lambda key: as_long[key])
    assert best[:2] == ("16 style codes", "one critic step")
    assert SWAPPED.rows["TC, 16 style codes"]["style"] == SWAPPED.rows["AE, 16 style codes"]["style"] == 16
    # The thesis's objective and its width both leave more of the digit in the style.
    assert as_long["16 style codes", "thesis's objective", "acc_d"] < as_long[best] - 0.04
    assert as_long["64 style codes", "one critic step", "acc_d"] < as_long[best] - 0.1


@pytest.mark.parametrize("metric", SWAPPED.metrics)
def test_the_numbers_of_a_cause_are_those_of_the_stored_trials(metric: str) -> None:
    (cause,) = (
        claim.cause for claim in PAGE.claims if claim.item == f"coloured digits, {metric}, penalty without adversary"
    )
    before, after = re.findall(r"from (\d+) to (\d+)", cause)[0]
    unit = 1 if metric == "res_l2" else 100
    for number, column in ((before, "one critic step"), (after, "five times the passes")):
        assert int(number) == round(unit * trials()["16 style codes", column, metric])


def test_what_acc_c_and_res_l2_lack_is_lost_without_a_swap() -> None:
    found = trials()
    for row, column, _ in found:
        at = {metric: found[row, column, metric] for metric in ("acc_c", "acc_plain", "res_l2", "l2_plain")}
        assert abs(at["acc_c"] - at["acc_plain"]) < 0.015
        assert at["l2_plain"] > 0.8 * at["res_l2"]


ROWS = [(table, row) for table in (SWAPPED, ADVERSARY) for row in table.rows]


@pytest.mark.parametrize(("table", "row"), ROWS, ids=[f"{table.name}, {row}" for table, row in ROWS])
def test_a_row_is_trained_and_measured(table: Table, row: str) -> None:
    settings: dict[str, Any] = {**table.method(row, "cpu"), **TINY}
    settings |= {"flow_epochs": 1} if row == "DIIN" else {}
    (column,) = table.columns
    found = measure(settings, column, seed=0)
    assert set(found) == set(table.metrics)
    assert found == measure(settings, column, seed=0)
    assert 0 <= found["acc_d"] <= 1
    assert found["res_l2"] > 0


def test_the_column_decides_on_the_adversary() -> None:
    settings = {**SWAPPED.method("AE", "cpu"), **TINY}
    assert "adversary" not in fitted(settings, ALONE, 0).history_
    assert "adversary" in fitted(settings, WATCHED, 0).history_


def test_every_row_of_a_profile_has_the_same_budget() -> None:
    for profile in SWAPPED.profiles:
        rows = [table.method(row, profile) for table, row in ROWS]
        for name in ("images", "tested", "conv_channels", "epochs", "batch_size", "lr"):
            assert len({row[name] for row in rows}) == 1


def test_validation_images_are_not_those_of_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disentangling_width, "colour_digits", bundled_digits)
    learnt, kept = disentangling_width.training_and_validation(300, 100, seed=1)
    assert (len(learnt), len(kept)) == (300, 100)
    assert not {image.numpy().tobytes() for image in learnt.images} & {image.numpy().tobytes() for image in kept.images}


@pytest.mark.parametrize("column", disentangling_width.COLUMNS)
def test_a_trial_of_the_style_width_is_trained_as_the_column_says(column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[GroupedAutoencoder] = []

    def kept(*data: Any, **settings: Any) -> GroupedAutoencoder:
        fits.append(fit_autoencoder(*data, **settings))
        return fits[-1]

    monkeypatch.setattr(disentangling_width, "colour_digits", bundled_digits)
    monkeypatch.setattr(disentangling_width, "reader_of_digits", lambda: DigitClassifier().eval())
    monkeypatch.setattr(disentangling_width, "fit_autoencoder", kept)
    monkeypatch.setitem(disentangling_width.COLUMNS, "five times the passes", {"epochs": 5})
    (table,) = disentangling_width.TABLES
    assert set(table.measure(table.method("16 style codes", "cpu") | TINY, column, 0)) == set(table.metrics)
    (model,) = fits
    assert model.groups["style"].width == 16
    assert model.joint == ("thesis's objective" in column)
    assert model.critic_steps == (3 if "three critic steps" in column else 1)
    assert model.jitter == (0.35 if "noise" in column else 0.7)
    assert model.epochs == (5 if "passes" in column else 1)


def test_pictures_stand_side_by_side() -> None:
    picture = shown(torch.stack([torch.full((3, 32, 32), -1.0), torch.ones(3, 32, 32)]))
    assert picture.shape == (32, 64, 3)
    assert picture[0, 0].tolist() == [0, 0, 0]
    assert picture[0, 63].tolist() == [1, 1, 1]


def test_a_grid_is_drawn(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    digits = bundled_digits(count=8).images
    drawing = Figure()
    axes = drawing.subplots()
    draw_grid(axes, fitted({**SWAPPED.method("AE", "cpu"), **TINY}, ALONE, 0), digits[:5], digits[5:], "digit")
    (drawn,) = axes.get_images()
    array = drawn.get_array()
    assert array is not None
    assert array.shape == (3 * 32 + 8 + 32, 7 * 32, 3)
    np.testing.assert_allclose(array[-32:, : 5 * 32], shown(digits[:5]))
    drawing.savefig(tmp_path / "grid.png")
