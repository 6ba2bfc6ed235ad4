"""Parts of files: every row once, in order, whatever the files look like."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offmap.data.table_files import read_cells
from offmap.scale.parts import BEGINNING, Position, count_rows, parts_of
from offmap.scale.sources import open_source

FEW = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FEW
@given(
    sizes=st.lists(st.lists(st.integers(1, 40), max_size=5), min_size=1, max_size=3),
    rows=st.integers(1, 60),
    split=st.booleans(),
    batch=st.integers(1, 50),
)
def test_parts_of_parquet_hold_every_row_once(
    tmp_path: Path, sizes: list[list[int]], rows: int, split: bool, batch: int
) -> None:
    paths, count = [], 0
    for place, groups in enumerate(sizes):
        paths.append(tmp_path / f"{place}.parquet")
        with pq.ParquetWriter(paths[-1], pa.schema([("x", pa.int64())])) as writer:
            for size in groups:
                writer.write_table(pa.table({"x": np.arange(count, count + size)}), row_group_size=size)
                count += size
    source = open_source(paths)
    parts = list(parts_of(source, BEGINNING, rows, split_groups=split))
    assert count_rows(source) == count == sum(part.rows for part in parts)
    for number, part in enumerate(parts):
        found = np.concatenate([table["x"].to_numpy() for table in part.batches(["x"], batch)])
        np.testing.assert_array_equal(found, np.arange(part.at.before, part.at.before + part.rows))
        later = list(parts_of(source, part.at, rows, split_groups=split))
        assert [each.at for each in later] == [each.at for each in parts[number:]]
        assert not split or part.rows <= rows
    assert sum(part.ends for part in parts) == sum(sum(groups) > 0 for groups in sizes)


CELLS = st.lists(st.sampled_from(["1", "", "x,y", 'a"b', "line\nbreak", "é"]), min_size=2, max_size=2)


@FEW
@given(lines=st.lists(CELLS, max_size=30), rows=st.integers(1, 12), start=st.integers(0, 3))
def test_parts_of_csv_hold_the_cells_of_the_whole_file(
    tmp_path: Path, lines: list[list[str]], rows: int, start: int
) -> None:
    path = tmp_path / "rows.csv"
    pd.DataFrame(lines, columns=["a", "b"]).to_csv(path, index=False)
    whole = read_cells(path)
    parts = list(parts_of(open_source(path), BEGINNING, rows))
    tables = [table for part in parts for table in part.batches(["b", "a"])]
    found = pa.concat_tables(tables).to_pydict() if tables else {"b": [], "a": []}
    assert found == {"b": whole["b"].tolist(), "a": whole["a"].tolist()}
    assert [part.ends for part in parts] == [False] * (len(parts) - 1) + [True] * bool(parts)
    if start < len(parts):
        again = list(parts_of(open_source(path), parts[start].at, rows))
        assert [part.at for part in again] == [part.at for part in parts[start:]]


def test_a_row_group_that_is_larger_than_a_part_is_one_part(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"x": np.arange(100)}), path, row_group_size=50)
    assert [part.rows for part in parts_of(open_source(path), BEGINNING, 20)] == [50, 50]
    pieces = parts_of(open_source(path), Position(0, 20, 20), 20, split_groups=True)
    assert [(part.at.row, part.rows) for part in pieces] == [(20, 20), (40, 10), (50, 20), (70, 20), (90, 10)]


def test_folders_state_columns_and_hidden_files_are_no_data(tmp_path: Path) -> None:
    for name in ("year=2024/b.parquet", "year=2025/a.parquet", "_tmp/c.parquet", ".d.parquet", "year=2024/_SUCCESS"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"x": [1]}), tmp_path / name)
    source = open_source(tmp_path)
    assert [file.values["year"].as_py() for file in source.files] == [2024, 2025]
    (part, _) = parts_of(source)
    assert next(part.batches(["year", "x"])).to_pydict() == {"year": [2024], "x": [1]}


def test_partitions_are_texts_unless_all_are_integers(tmp_path: Path) -> None:
    for name in ("zip=01234", "zip=75001", "zip=__HIVE_DEFAULT_PARTITION__", "zip=a%20b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text("x\n1\n")
    assert [file.values["zip"].as_py() for file in open_source(tmp_path).files] == ["01234", "75001", None, "a b"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), "holds no file that ends in .parquet"),
        (("a.csv", "b.parquet"), "a.csv and .*b.parquet are of two formats"),
        (("k=1/a.csv", "b.csv"), "a.csv must lie in folders named|b.csv"),
    ],
)
def test_a_folder_that_is_no_table_is_refused(tmp_path: Path, names: tuple[str, ...], message: str) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n1\n")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        open_source(tmp_path)
