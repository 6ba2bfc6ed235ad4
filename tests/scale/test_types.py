"""Columns that are carried through: one type for all files, and every value as it was."""

import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from offmap.data.roles import Roles
from offmap.scale import score_batches, score_files
from tests.scale.tables import NAMES, fitted, numbers

NOON = datetime.datetime(2025, 3, 1, 12)
AWARE = NOON.replace(tzinfo=datetime.UTC)


def folder_of(folder: Path, *ids: Any) -> Path:
    """A folder with one Parquet file per column of ids: a.parquet, b.parquet and so on."""
    (folder / "rows").mkdir()
    for letter, column in zip("abcd", ids, strict=False):
        rows = pa.Table.from_pandas(numbers(len(column), seed=1)[NAMES], preserve_index=False)
        pq.write_table(rows.append_column("id", column), folder / "rows" / f"{letter}.parquet")
    return folder / "rows"


def carried(folder: Path, *ids: Any) -> tuple[list[Any], pa.DataType]:
    """The ids beside the scores of such a folder, and their type."""
    done = score_files(fitted(), folder_of(folder, *ids), folder / "scores.parquet")
    column = pq.read_table(done.out)["id"]
    return column.to_pylist(), column.type


@pytest.mark.parametrize(
    ("first", "second", "expected", "kind"),
    [
        (pa.array([1, 2]), pa.array(["007", "0042"]), ["1", "2", "007", "0042"], pa.string()),
        (pa.array(["007"]), pa.array([2**62 + 1]), ["007", str(2**62 + 1)], pa.string()),
        (pa.array(["a"]).dictionary_encode(), pa.array(["b"]), ["a", "b"], pa.string()),
        (pa.array([1], pa.int8()), pa.array([2**40]), [1, 2**40], pa.int64()),
        (pa.array([2**40]), pa.array([1], pa.int8()), [2**40, 1], pa.int64()),
        (pa.array([-1]), pa.array([7], pa.uint64()), [-1, 7], pa.int64()),
        (pa.array([1]), pa.array([2.0, None]), [1, 2, None], pa.int64()),
        (pa.array([1]), pa.array([2.5]), [1.0, 2.5], pa.float64()),
        (pa.nulls(2), pa.array(["007"]), [None, None, "007"], pa.string()),
        (pa.nulls(0), pa.array([3]), [3], pa.int64()),
        (pa.array([], pa.float64()), pa.array([True]), [True], pa.bool_()),
        (pa.nulls(1, pa.string()), pa.array([3]), [None, 3], pa.int64()),
        (pa.nulls(1, pa.bool_()), pa.array([NOON]), [None, NOON], pa.timestamp("us")),
        (pa.nulls(1, pa.bool_()), pa.nulls(1), [None, None], pa.bool_()),
        (pa.array([NOON], pa.timestamp("ms")), pa.array([NOON], pa.timestamp("us")), [NOON] * 2, pa.timestamp("us")),
        (
            pa.array([AWARE], pa.timestamp("us", "Asia/Tokyo")),
            pa.array([AWARE], pa.timestamp("us", "UTC")),
            [AWARE] * 2,
            pa.timestamp("us", "UTC"),
        ),
    ],
)
def test_a_column_has_the_type_that_holds_the_values_of_all_files(
    tmp_path: Path, first: pa.Array, second: pa.Array, expected: list[Any], kind: pa.DataType
) -> None:
    assert carried(tmp_path, first, second) == (expected, kind)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([True]), pa.array([7])),
        (pa.array([NOON]), pa.array([AWARE], pa.timestamp("us", "UTC"))),
        (pa.array([2**62 + 1]), pa.array([0.5])),
        (pa.array(["a"]), pa.array([{"part": 1}])),
    ],
)
def test_types_that_have_nothing_in_common_are_refused_before_the_first_row(
    tmp_path: Path, first: pa.Array, second: pa.Array
) -> None:
    message = rf"the column 'id' holds {_quoted(first)} in .*a\.parquet and {_quoted(second)} in .*b\.parquet; write it"
    with pytest.raises(ValueError, match=message):
        score_files(fitted(), folder_of(tmp_path, first, second), tmp_path / "scores", part_rows=1)
    assert not (tmp_path / "scores").exists()


def test_a_later_file_decides_too_and_the_files_named_are_those_that_disagree(tmp_path: Path) -> None:
    source = folder_of(tmp_path, pa.array([1]), pa.array([2], pa.int8()), pa.array(["x"]))
    found = pd.concat(score_batches(fitted(), source), ignore_index=True)
    assert found["id"].tolist() == ["1", "2", "x"]
    pq.write_table(pq.read_table(source / "c.parquet").set_column(3, "id", [[True]]), source / "c.parquet")
    with pytest.raises(ValueError, match=r"int64 in .*a\.parquet and bool in .*c\.parquet"):
        list(score_batches(fitted(), source, roles=Roles(id=("id",))))


def _quoted(column: pa.Array) -> str:
    return str(column.type).replace("[", r"\[").replace("]", r"\]")
