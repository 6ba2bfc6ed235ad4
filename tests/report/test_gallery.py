"""The gallery: images, texts and features as they should be seen."""

import re

import numpy as np
import pytest

from offmap.report.gallery import deviations_of, gallery
from offmap.report.pictures import as_bytes
from tests.report.parts import Page, examples


def test_flagged_rows_are_marked() -> None:
    images = gallery(examples(rows=np.ones((2, 4, 4))), threshold=1.5)
    texts = Page(gallery(examples(), threshold=1.5))
    assert re.findall(r'<li class="([^"]+)"', images) == ["tile flagged", "tile"]
    assert [texts.row("one")[-1], texts.row("two")[-1]] == ["yes", "no"]


def test_deviations_count_standard_deviations() -> None:
    shown = examples(
        rows=np.array([[1.0, 5.0, 7.0], [3.0, 5.0, 8.0]]),
        normal_mean=np.array([1.0, 3.0, 7.0]),
        normal_sd=np.array([0.5, 1.0, 0.0]),
    )
    deviations = deviations_of(shown)
    assert deviations is not None
    assert deviations.tolist() == [[0.0, 2.0, 0.0], [4.0, 2.0, np.inf]]
    assert Page(gallery(shown, threshold=1.5)).row("1")[-3:] == ["3 ▲", "5 ▲", "8 ▲"]


def test_wide_rows_show_the_features_that_deviate() -> None:
    rows = np.zeros((2, 40))
    rows[0, 31], rows[1, 8] = -9.0, 5.0
    shown = examples(rows=rows, normal_mean=np.zeros(40), normal_sd=np.ones(40))
    seen = Page(gallery(shown, threshold=1.5))
    assert {"feature 8", "feature 31"} <= set(seen.row("row"))
    assert "-9 ▼" in seen.row("0")
    assert "7 of 40 features" in seen.text


def test_the_strongest_deviations_of_a_row_stand_out() -> None:
    rows = np.array([[9.0, -8.0, 7.0, 6.0, 1.0]])
    shown = examples(rows=rows, index=[0], novelty=np.ones(1), normal_mean=np.zeros(5), normal_sd=np.ones(5))
    assert re.findall(r'<td class="(\w+)"', gallery(shown, threshold=1.5)) == ["far", "far", "far", "off"]


def test_intensities_become_bytes() -> None:
    whole = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    assert as_bytes(whole) is whole
    assert as_bytes(np.array([[[0.0, 0.5, 0.2]]])).tolist() == [[[0, 128, 51]]]
    assert as_bytes(np.array([[[-1.0, 0.0, 1.0]]])).tolist() == [[[0, 128, 255]]]
    assert as_bytes(np.zeros((1, 2, 2))).tolist() == [[[0, 0], [0, 0]]]


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 5, 1), (2, 3, 5, 3), (2, 3, 5, 4), (2, 300, 500, 3)])
def test_images_of_every_shape_are_shown(shape: tuple[int, ...]) -> None:
    shown = examples(rows=np.random.default_rng(0).random(shape))
    assert Page(gallery(shown, threshold=1.5)).tags.count("img") == 2


def test_a_table_of_any_cells_shows_them_with_ids_entities_and_reasons() -> None:
    shown = examples(
        rows=np.array([["FR", 12.5, True], ["DE", np.nan, False]], dtype=object),
        feature_names=["country", "amount", "present"],
        identity={"payment": ["p-7", "p-9"]},
        entity=["till 1", "till 2"],
        reasons=["amount: 12.5 (usually 3 to 4), 90 %\ncountry: FR (usually DE), 10 %", ""],
    )
    seen = Page(gallery(shown, threshold=1.5))
    assert seen.row("row")[:4] == ["row", "payment", "entity", "novelty"]
    assert seen.row("row")[-3:] == ["country", "amount", "present"]
    assert seen.row("0")[1:3] == ["p-7", "till 1"]
    assert seen.row("0")[-3:] == ["FR", "12.5", "yes"]
    assert seen.row("1")[-3:] == ["DE", "–", "no"]
    assert "90 % · country: FR (usually DE), 10 %" in seen.text
    assert gallery(shown, threshold=1.5).count('class="why"') == 1


def test_wide_tables_of_any_cells_show_the_first_columns() -> None:
    rows = np.array([[f"c{column}" for column in range(9)]] * 2, dtype=object)
    assert "7 of 9 columns" in gallery(examples(rows=rows), threshold=1.5)
