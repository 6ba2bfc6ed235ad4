"""Explanations of tables as users have them: categories, dates, truth values and gaps through a ``TableEncoder``."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from offmap import Calibrated
from offmap.data import TableEncoder
from offmap.density import MahalanobisDetector, NearestNeighborDetector, VAEDetector
from offmap.explain import explain, top_reasons
from offmap.explain.wording import in_words

RNG = np.random.default_rng(0)


def payments(n: int) -> pd.DataFrame:
    hours = RNG.normal(14, 1.5, n)
    return pd.DataFrame(
        {
            "time": (
                pd.Timestamp("2025-03-03") + pd.to_timedelta(24 * RNG.integers(0, 60, n) + hours, unit="h")
            ).astype("datetime64[s]"),
            "country": RNG.choice(["FR", "DE", "IT"], n),
            "amount": np.exp(RNG.normal(4, 0.4, n)).round(2),
            "age": np.where(RNG.random(n) < 0.1, np.nan, RNG.normal(45, 9, n).round()),
            "present": RNG.random(n) < 0.9,
        }
    )


KNOWN = payments(600)
PLANTED: dict[str, Any] = {
    "time": pd.Timestamp("2025-03-20 03:10:00"),
    "country": "PE",
    "amount": 4000.0,
    "age": 130.0,
}


@pytest.mark.parametrize("as_csv", [False, True], ids=["typed", "texts"])
@pytest.mark.parametrize(
    "detector",
    [
        NearestNeighborDetector(encoder=TableEncoder(), random_state=0),
        MahalanobisDetector(encoder=TableEncoder(), random_state=0),
        VAEDetector(encoder=TableEncoder(), epochs=15, random_state=0),
    ],
    ids=lambda detector: type(detector).__name__,
)
def test_the_planted_column_of_any_kind_is_the_first_reason(detector: Any, as_csv: bool) -> None:
    known, rows = KNOWN, payments(len(PLANTED))
    for place, (column, value) in enumerate(PLANTED.items()):
        rows.loc[place, column] = value
    if as_csv:
        known, rows = (frame.assign(time=frame["time"].astype(str)) for frame in (known, rows))
    found = explain(detector.fit(known), rows, reference=known)
    assert [each.reasons(1)[0].part for each in found] == list(PLANTED)
    for each, column in zip(found, PLANTED, strict=True):
        assert each.counterfactual is not None
        assert column in each.counterfactual.names
        assert detector.predict(pd.DataFrame([each.counterfactual.row])) == [1]


def test_dates_are_told_by_the_time_of_day_that_is_usual() -> None:
    model = NearestNeighborDetector(random_state=0).fit(KNOWN)
    row = payments(1).assign(time=PLANTED["time"])
    [found] = explain(model, row, reference=KNOWN)
    told = in_words(found)
    assert "time: 2025-03-20 03:10:00 (usually 1" in told
    low, high = dict(zip(found.parts, found.usual, strict=True))["time"]
    assert "08:00" < low <= high < "20:00"
    assert top_reasons(model, row, KNOWN, k=1)["reason_1"][0].startswith("time: ")


@pytest.mark.parametrize("nullable", [False, True])
def test_cells_are_told_alike_whatever_their_type(nullable: bool) -> None:
    known = KNOWN.assign(visits=RNG.integers(0, 9, len(KNOWN)))
    row = payments(1).assign(visits=300, time=lambda frame: frame["time"].shift(), country=None)
    known, row = (frame.convert_dtypes() if nullable else frame for frame in (known, row))
    [found] = explain(NearestNeighborDetector(random_state=0).fit(known), row, reference=known)
    low, high = dict(zip(found.parts, found.usual, strict=True))["visits"]
    assert 0 <= low <= high <= 8
    for told in (f"visits: 300 (usually {low} to {high})", "time: missing (usually", "country: missing (usually"):
        assert told in str(found)
    assert {reason["value"] for reason in found.to_dict()["reasons"]} >= {300, None}


@pytest.mark.parametrize("calibration", [0.1, "cv"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_further_columns_make_no_difference_and_a_missing_one_is_named(calibration: Any, wrapped: bool) -> None:
    detector = MahalanobisDetector(calibration=0.1 if wrapped else calibration, random_state=0)
    model = (Calibrated(detector, calibration=calibration, random_state=0) if wrapped else detector).fit(KNOWN)
    row = payments(1).assign(country="PE")
    [found], [plain] = (explain(model, rows, reference=KNOWN) for rows in (row.assign(note="new"), row))
    assert found.to_dict() == plain.to_dict()
    with pytest.raises(ValueError, match="reference must have the columns of X; it has no column 'age'"):
        explain(model, row, reference=KNOWN.drop(columns="age"))


def test_columns_of_arrow_are_explained_as_those_of_pandas() -> None:
    model = NearestNeighborDetector(random_state=0).fit(KNOWN)
    row = payments(1).assign(time=PLANTED["time"])
    [plain] = explain(model, row, reference=KNOWN)
    [found] = explain(model, row.convert_dtypes(dtype_backend="pyarrow"), reference=KNOWN)
    np.testing.assert_array_equal(found.contributions, plain.contributions)
    np.testing.assert_array_equal(found.neighbors, plain.neighbors)


def test_a_row_that_is_no_table_is_refused() -> None:
    X = RNG.normal(size=(200, 3))
    model = MahalanobisDetector(random_state=0).fit(X)
    for rows, reference, name in ((X[0], X, "X"), (X[:1], X[0], "reference")):
        with pytest.raises(ValueError, match=rf"{name} must have the shape \(n, d\)"):
            explain(model, rows, reference=reference)


def test_rows_that_an_encoder_has_changed_are_no_reference() -> None:
    model = NearestNeighborDetector(random_state=0).fit(payments(200))
    with pytest.raises(ValueError, match="keeps its training rows only as its encoder has made them, which cannot be"):
        explain(model, payments(1))
