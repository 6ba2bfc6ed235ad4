"""Tables that are not what their name says: a message with column, row or line, and a remedy."""

import gzip
import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from offmap.data import TableEncoder, open_data, read
from offmap.data.roles import Roles
from offmap.data.table_batches import cells_in_batches
from offmap.data.tables import NoRows, read_table

CSV = "id,city,paid\n1,Köln,2\n2,Ulm,3\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04rest", "it is an Excel workbook; open it there and save it as CSV UTF-8"),
        (b"\xd0\xcf\x11\xe0rest", "it is an Excel workbook"),
        (CSV.encode("utf-16"), "it is written in UTF-16; save it as UTF-8"),
        (CSV.encode("latin1"), "line 2 has the byte 0xf6, which is not UTF-8; save it as UTF-8"),
        (b"a,b,a\n1,2,3\n", r"the column name 'a' occurs 2 times \(rename or remove all but one\)"),
        (
            b"a,b\n1,2\n3,4,5\n",
            "line 3 has 3 cells, the header 2; the comma separates: put cells that hold it in quotes",
        ),
        (
            b"a;b\n1,5;2\n",
            "line 1 is one cell, 'a;b'; the comma separates: it seems to be separated by semicolons; save it as CSV",
        ),
        (
            b"a,b;c\n1,2,5;3\n",
            "line 2 has 3 cells, the header 2; the comma separates: it seems to be separated by semicolons",
        ),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize(("sign", "name"), [(";", "semicolons"), ("|", "bars"), ("\t", "tabs")])
def test_a_file_with_another_separator_is_not_one_column(tmp_path: Path, sign: str, name: str) -> None:
    """Without a comma in any cell, every row has as many cells as the header: one."""
    (tmp_path / "a.csv").write_text(f"age{sign}shop\n31{sign}fuel\n45{sign}grocer\n")
    with pytest.raises(ValueError, match=f"it seems to be separated by {name}"):
        read(tmp_path / "a.csv")
    with pytest.raises(ValueError, match=f"it seems to be separated by {name}"):
        list(cells_in_batches(tmp_path / "a.csv", 1))


@pytest.mark.parametrize("roles", [Roles(only=("scan",)), Roles(label="scan"), Roles(text="scan")], ids=str)
def test_a_column_of_bytes_is_named_and_can_be_left_out(tmp_path: Path, roles: Roles) -> None:
    path = tmp_path / "a.parquet"
    pd.DataFrame({"paid": [1.0, 2.0], "scan": [None, b"\xff\xd8"]}).to_parquet(path)
    for given in (Roles(), roles):
        with pytest.raises(ValueError, match=r"column 'scan' of .*a\.parquet holds bytes; leave it out with --drop"):
            read_table(path, given)
    assert read_table(path, Roles(drop=("scan",))).feature_names == ("paid",)


def test_one_column_needs_no_separator(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("note\na;b\nc|d\n")
    assert next(cells_in_batches(tmp_path / "a.csv", 2))["note"].tolist() == ["a;b", "c|d"]
    assert len(read(tmp_path / "a.csv")) == 2


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(CSV.encode("utf-8-sig"))
    assert read(tmp_path / "a.csv").feature_names == ("id", "city", "paid")


@pytest.mark.parametrize(("change", "first"), [(38, 38), (20, 20), (10, 0)])
def test_a_date_format_that_changes_midway_is_named_by_row(change: int, first: int) -> None:
    days = pd.date_range("2025-01-20", periods=40)
    frame = pd.DataFrame({"day": [*days[:change].strftime("%Y-%m-%d"), *days[change:].strftime("%d/%m/%Y")]})
    with pytest.raises(
        ValueError, match=rf"'day' is a date.*, but row {first} holds .* \(write all dates of the column"
    ):
        TableEncoder().fit(frame)


def test_a_category_of_very_many_values_is_left_out_with_its_name() -> None:
    frame = pd.DataFrame({"x": np.tile([1.0, 2.0], 60_000), "word": [f"w{i // 2}x" for i in range(120_000)]})
    frame.loc[:1000, "word"] = [f"v{i}" for i in range(1001)]
    with pytest.warns(UserWarning, match=r"'word', since it has 60,\d\d\d different texts in 120,000 rows"):
        TableEncoder().fit(frame)


LINES = '{"a": 1, "kind": "x"}\n{"a": 2.5, "kind": "y"}\n\n{"a": null, "kind": "x"}\n'


def test_json_lines_are_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(LINES)
    data = read(tmp_path / "a.jsonl", label="kind")
    assert data.y is not None
    assert data.y.tolist() == ["x", "y", "x"]
    np.testing.assert_array_equal(data.X, [[1.0], [2.5], [np.nan]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}\nnonsense\n', "line 2 is not JSON"),
        ("[1, 2]\n", "line 1 holds a list; write one object per line"),
        ('{"a": {"b": 1}}\n', "'a' in line 1 holds a dict; give it columns of its own"),
    ],
)
def test_json_lines_that_are_no_table(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.jsonl").write_text(content)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "a.jsonl")


@pytest.mark.parametrize("content", [LINES, "a,kind\n1,x\n2.5,y\n,x\n"])
def test_standard_input_is_csv_or_json_lines(monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    data = open_data("-", label="kind")
    assert (data.name, len(data)) == ("standard input", 3)
    np.testing.assert_array_equal(data.X, [[1.0], [2.5], [np.nan]])


def test_roles_decide_what_is_a_feature_and_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"id,a,b,c,y\n007,1,2,x,n\n008,3,4,z,m\n"))
    data = read_table(tmp_path / "a.csv.gz", Roles(id=("id",), drop=("c",), keep=("c",), label="y"))
    assert data.feature_names == ("a", "b")
    assert data.identity is not None
    assert data.identity.to_dict("list") == {"id": ["007", "008"], "c": ["x", "z"]}
    assert read_table(tmp_path / "a.csv.gz", Roles(only=("b",))).X.tolist() == [[2.0], [4.0]]
    with pytest.raises(ValueError, match=r"only must be a column of .*, not 'q'; drop must be a column of .*, not 'r'"):
        read_table(tmp_path / "a.csv.gz", Roles(only=("q",), drop=("r",)))


def test_a_header_without_rows_tells_what_would_be_kept(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,a\n")
    with pytest.raises(NoRows, match="must have at least one row") as refusal:
        read_table(tmp_path / "a.csv", Roles(id=("id",)))
    assert refusal.value.kept == ["id"]
