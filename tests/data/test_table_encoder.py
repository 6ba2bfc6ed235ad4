"""Tables as features: what each kind of column becomes, what is left out, what is unexpected, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offmap
from offmap.data import ColumnsLeftOut, TableEncoder
from offmap.density import NearestNeighborDetector, VAEDetector


def payments(n: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "time": pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.uniform(0, 60 * 86400, n).round(), unit="s"),
            "country": rng.choice(["FR", "DE", "IT"], n, p=[0.5, 0.3, 0.2]),
            "amount": np.exp(rng.normal(3, 1, n)),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 90, n)),
            "member": rng.random(n) < 0.3,
        }
    )


def features(encoder: TableEncoder, frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(encoder.transform(frame), columns=list(encoder.get_feature_names_out()))


@settings(max_examples=30)
@given(st.lists(st.floats(-1e12, 1e12), min_size=3, max_size=50, unique=True), st.integers(0, 9))
def test_numbers_are_standardised_and_gaps_are_the_mean(values: list[float], gaps: int) -> None:
    column = np.array(values + [np.nan] * gaps)
    encoder = TableEncoder(kinds={"a": "number"}).fit(pd.DataFrame({"a": column}))
    found = features(encoder, pd.DataFrame({"a": column}))
    expected = (np.array(values) - np.mean(values)) / np.std(values)
    np.testing.assert_allclose(found["a value"][: len(values)], expected, rtol=1e-6, atol=1e-6)
    assert (found["a value"][len(values) :] == 0).all()
    assert ("a missing" in found) == (gaps > 0)
    if gaps:
        assert found["a missing"].tolist() == [0.0] * len(values) + [1.0] * gaps


def test_a_large_mean_leaves_the_digits_of_a_small_spread() -> None:
    values = 1e12 + np.arange(50) % 7
    found = TableEncoder(kinds={"a": "number"}).fit_transform(pd.DataFrame({"a": values}))[:, 0]
    np.testing.assert_allclose(found, (values - values.mean()) / values.std(), rtol=1e-6, atol=1e-6)


def test_heavy_tails_have_a_linear_and_a_logarithmic_feature() -> None:
    amounts = np.exp(np.random.default_rng(0).normal(0, 2, 2000))
    encoder = TableEncoder().fit(pd.DataFrame({"a": amounts}))
    found = features(encoder, pd.DataFrame({"a": [1e4, 1e5, 1e6]}))
    np.testing.assert_allclose(found["a value"], (np.array([1e4, 1e5, 1e6]) - amounts.mean()) / amounts.std())
    ten, hundred, thousand = found["a compressed value"]
    assert thousand - hundred == pytest.approx(hundred - ten, rel=1e-3)


def test_a_category_is_its_frequent_values_and_its_rarity() -> None:
    words = ["oak"] * 60 + ["elm"] * 39 + ["yew"]
    encoder = TableEncoder().fit(pd.DataFrame({"tree": words}))
    found = features(encoder, pd.DataFrame({"tree": ["oak", "elm", "yew"]}))
    assert found[["tree is oak", "tree is elm"]].to_numpy().tolist() == [[1, 0], [0, 1], [0, 0]]
    surprise = -np.log(np.repeat([0.6, 0.39, 0.01], [60, 39, 1]))
    expected = (-np.log([0.6, 0.39, 0.01]) - surprise.mean()) / surprise.std()
    np.testing.assert_allclose(found["tree rarity"], expected, rtol=1e-9)


def test_times_are_points_on_circles() -> None:
    days = pd.Series(pd.date_range("2025-01-01 00:00", periods=24 * 14, freq="h"))
    encoder = TableEncoder().fit(pd.DataFrame({"at": days}))
    assert list(encoder.get_feature_names_out())[:4] == [
        "at hour (sin)",
        "at hour (cos)",
        "at weekday (sin)",
        "at weekday (cos)",
    ]
    late, early, noon = encoder.transform(
        pd.DataFrame({"at": pd.to_datetime(["2025-02-01 23:59", "2025-02-01 00:01", "2025-02-01 12:00"])})
    )[:, :2]
    assert np.linalg.norm(late - early) < 0.02 < 1 < np.linalg.norm(late - noon)


@pytest.mark.parametrize("form", [None, "%d/%m/%Y %H:%M:%S %z", "%d.%m.%Y %I:%M:%S %p %z"])
def test_a_time_with_an_offset_is_read_on_the_clock_it_was_written_by(form: str | None) -> None:
    # The clocks change on 9 March 2025, so that the column has two offsets.
    frame = payments(1000)[["time", "amount"]]
    local = frame.assign(time=frame["time"].dt.tz_localize("America/Los_Angeles") + pd.Timedelta(days=30))
    written = [time.isoformat() if form is None else time.strftime(form) for time in local["time"]]
    assert len({text[-6:] for text in written}) == 2
    texts, cells = local.assign(time=written), local.astype({"time": object})
    expected = TableEncoder().fit(local).transform(local)
    np.testing.assert_array_equal(TableEncoder().fit(local).transform(cells), expected)
    np.testing.assert_array_equal(TableEncoder().fit(texts).transform(texts), expected)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles", "UTC", "+02:00", "dateutil/Asia/Tokyo"])
def test_the_same_instant_in_another_time_zone_is_the_same_time(tmp_path: Path, zone: str) -> None:
    frame = payments()[["time", "amount"]]
    here = frame.assign(time=frame["time"].dt.tz_localize("Europe/Berlin"))
    there = here.assign(time=here["time"].dt.tz_convert(zone))
    model = NearestNeighborDetector(random_state=0).fit(here)
    model.save(tmp_path / "model.safetensors")
    for each in (model, offmap.load(tmp_path / "model.safetensors")):
        np.testing.assert_array_equal(each.novelty(there), each.novelty(here))


def test_times_without_a_zone_stay_as_they_are() -> None:
    naive = payments()[["time", "amount"]]
    here = naive.assign(time=naive["time"].dt.tz_localize("Europe/Berlin"))
    texts = here.assign(time=[time.isoformat() for time in here["time"].dt.tz_localize(None).dt.tz_localize("UTC")])
    encoder = TableEncoder().fit(here)
    for other in (naive, texts):
        np.testing.assert_array_equal(encoder.transform(other), encoder.transform(here))
    np.testing.assert_array_equal(TableEncoder().fit(naive).transform(here), encoder.transform(here))


def test_dates_of_a_file_without_a_zone_are_read_as_before_and_an_unknown_zone_is_refused() -> None:
    here = payments()[["time", "amount"]].assign(time=lambda frame: frame["time"].dt.tz_localize("Europe/Berlin"))
    encoder = TableEncoder().fit(here)
    expected = encoder.transform(here)
    encoder.columns_["time"]["zone"] = "Europe/Atlantis"
    encoder._build()
    with pytest.raises(ValueError, match="the column 'time' has the time zone 'Europe/Atlantis'"):
        encoder._check_fitted()
    del encoder.columns_["time"]["zone"]
    encoder._build()
    encoder._check_fitted()
    np.testing.assert_array_equal(encoder.transform(here), expected)


def test_a_later_day_is_not_novel_by_itself_but_an_age_is() -> None:
    events = pd.DataFrame({"at": pd.date_range("2025-01-01 08:00", periods=60, freq="D")})
    births = pd.DataFrame({"born": pd.date_range("1950-01-01", periods=60, freq="365D")})
    assert not any("age" in name for name in TableEncoder().fit(events).get_feature_names_out())
    encoder = TableEncoder().fit(births)
    assert "born age" in encoder.get_feature_names_out()


@pytest.mark.parametrize(
    ("column", "kind", "reason"),
    [
        (["EUR"] * 60, "constant", "every value is 'EUR'"),
        ([None] * 60, "empty", "it has no values"),
        ([f"{7 * i:x}-{i}" for i in range(60)], "texts", "60 different texts in 60 rows"),
        (list(range(1000, 1060)), "numbers", "it numbers the rows"),
        ((np.random.default_rng(0).permutation(150)[:60] + 5).tolist(), "part of the numbers", "it numbers the rows"),
    ],
)
def test_columns_that_tell_nothing_are_left_out(column: list[object], kind: str, reason: str) -> None:
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=60), "useless": column})
    with pytest.warns(ColumnsLeftOut, match=reason):
        encoder = TableEncoder().fit(frame)
    assert list(encoder.columns_) == ["x"]
    assert encoder.schema()["kind"].tolist() == ["number", "left out"]


def test_numbers_that_repeat_or_have_fractions_are_no_identifiers() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 90, 60), "height": rng.normal(size=60), "cents": rng.integers(10**9, size=60)}
    )
    assert list(TableEncoder().fit(frame).columns_) == ["age", "height", "cents"]


@pytest.mark.parametrize("detector", [VAEDetector(epochs=30, random_state=0), NearestNeighborDetector(random_state=0)])
def test_unseen_values_and_new_gaps_raise_novelty(detector: VAEDetector | NearestNeighborDetector) -> None:
    frame = payments()
    detector.fit(frame)
    plain = frame.head(20)
    before = detector.novelty(plain)
    for column, cell in (("country", "PE"), ("amount", None), ("country", None)):
        after = detector.novelty(plain.assign(**{column: cell}))
        assert (after > before).all()
        assert (after > detector.threshold_).all()
    # Ages had gaps in training: one more is ordinary.
    assert np.median(detector.novelty(plain.assign(age=np.nan))) < detector.threshold_


def test_new_values_of_a_column_with_many_are_ordinary() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"shop": [f"s{int(s)}" for s in rng.zipf(1.6, 800).clip(max=10**6)], "x": rng.normal(size=800)}
    )
    encoder = TableEncoder().fit(frame)
    assert features(encoder, pd.DataFrame({"shop": ["new"], "x": [0.0]}))["unexpected"].tolist() == [0.0]


def test_the_encoder_sees_the_training_part_alone() -> None:
    frame = payments()
    detector = NearestNeighborDetector(random_state=0).fit(frame)
    assert detector.encoder_.columns_["country"]["counts"].sum() == 360


def test_columns_are_found_by_name_and_a_missing_one_is_named() -> None:
    frame = payments()
    detector = NearestNeighborDetector(random_state=0).fit(frame)
    turned = frame[frame.columns[::-1]].assign(more=1)
    assert detector.novelty(turned).tobytes() == detector.novelty(frame).tobytes()
    with pytest.raises(ValueError, match="it lacks 'age', 'member', which the model was fitted on"):
        detector.novelty(frame.drop(columns=["member", "age"]))


def test_a_saved_model_gives_the_same_bytes(tmp_path: Path) -> None:
    frame = payments()
    detector = NearestNeighborDetector(random_state=0).fit(frame)
    detector.save(tmp_path / "model.safetensors")
    loaded = offmap.load(tmp_path / "model.safetensors")
    assert loaded.novelty(frame).tobytes() == detector.novelty(frame).tobytes()
    pd.testing.assert_frame_equal(loaded.encoder_.schema(), detector.encoder_.schema())


def test_the_text_of_a_cell_is_read_as_its_value() -> None:
    frame = payments()
    encoder = TableEncoder().fit(frame)
    as_text = frame.astype(str).replace({"nan": "", "NaN": ""})
    np.testing.assert_allclose(encoder.transform(as_text), encoder.transform(frame), rtol=1e-9, atol=1e-9)


def test_a_refit_on_numbers_forgets_the_encoder() -> None:
    detector = NearestNeighborDetector(random_state=0).fit(payments())
    detector.fit(np.random.default_rng(0).normal(size=(300, 3)))
    assert not hasattr(detector, "encoder_")


def test_all_problems_are_named_at_once() -> None:
    frame = payments().astype({"amount": object, "time": str})
    frame.loc[3, "amount"], frame.loc[5, "time"], frame.loc[7, "age"] = "lots", "soon", np.inf
    with pytest.raises(ValueError, match="X has 3 problems") as refusal:
        TableEncoder().fit(frame)
    for words in (
        "'time' is a date, but row 5 holds 'soon'",
        "'amount' is a number, but row 3 holds 'lots'",
        "row 7 holds inf",
    ):
        assert words in str(refusal.value)


def test_scoring_refuses_words_among_numbers_by_row() -> None:
    encoder = TableEncoder().fit(payments())
    with pytest.raises(ValueError, match="column 'amount' is a number, but row 2 holds 'lots'"):
        encoder.transform(
            payments(9).astype({"amount": object}).replace({"amount": {payments(9)["amount"][2]: "lots"}})
        )


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"zip": "colour"}, "must be one of 'number', 'boolean', 'date', 'category'; got 'colour'"),
        ({"no": "date"}, "which X lacks"),
    ],
)
def test_kinds_are_checked(kinds: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TableEncoder(kinds=kinds).fit(pd.DataFrame({"zip": [1, 2, 3]}))


def test_a_kind_can_be_stated() -> None:
    encoder = TableEncoder(kinds={"zip": "category"}).fit(pd.DataFrame({"zip": [75001, 75002, 75001, 75002]}))
    assert encoder.transform(pd.DataFrame({"zip": ["75001", "75002", "1"]}))[:, -1].tolist()[:2] == [0.0, 0.0]
    assert encoder.transform(pd.DataFrame({"zip": [1]}))[0, -1] > 0
