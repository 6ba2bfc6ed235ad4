"""The real data sets, where they are available: each matches its description."""

import numpy as np
import pytest

from offmap.data import load, load_table, names
from offmap.data.registry import CATALOGUE
from tests.real_data import require


@pytest.mark.data
@pytest.mark.parametrize("name", [name for name in names() if "bundled" not in CATALOGUE[name].origin])
def test_real_set_is_what_its_entry_says(name: str) -> None:
    entry = require(name)
    # The last split only: the archives of large training splits take seconds each to unpack.
    part, rows = list(entry.rows.items())[-1]
    if entry.kind == "tables":
        assert len(load_table(name, part)) == rows
        return
    data = load(name, part)
    assert (len(data), data.kind) == (rows, entry.kind)
    assert data.y is not None
    if data.class_names:
        assert data.y.dtype == np.int64
        assert 0 <= data.y.min() <= data.y.max() < len(data.class_names)


@pytest.mark.data
def test_anomalies_of_adbench_are_as_many_as_stated() -> None:
    require("adbench/fault")
    y = load("adbench/fault").y
    assert y is not None
    assert int(y.sum()) == 673


@pytest.mark.data
def test_movielens_tables_fit_together() -> None:
    require("ml1m")
    ratings, users = load_table("ml1m", "ratings"), load_table("ml1m", "users")
    assert ratings["rating"].value_counts().sort_index().tolist() == [56_174, 107_557, 261_197, 348_971, 226_310]
    assert set(ratings["user_id"]) == set(users["user_id"])
    assert users["zip"].str.startswith("0").any()
