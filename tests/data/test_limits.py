"""Files that would fill the memory, or are damaged, end in one line."""

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from offmap.data import read


def refused(path: Path, message: str) -> None:
    with pytest.raises(ValueError, match=message) as refusal:
        read(path)
    assert str(path) in str(refusal.value)
    assert str(refusal.value).isprintable()


def npy_header(text: str) -> bytes:
    stream = io.BytesIO()
    stream.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
    return stream.getvalue()


def test_an_archive_that_grows_too_much_is_refused(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((10_000, 1_000)))
    refused(tmp_path / "a.npz", "grows more than 200 times when it is decompressed")
    small = np.zeros((1_000, 1_000))
    np.savez_compressed(tmp_path / "b.npz", X=small)
    assert np.array_equal(read(tmp_path / "b.npz").X, small)


def test_a_table_that_grows_too_much_is_refused(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.csv.gz", "wb", compresslevel=1) as stream:
        stream.write(b"a,b\n")
        for _ in range(80):
            stream.write(b"1,1\n" * (1 << 18))
    refused(tmp_path / "a.csv.gz", "grows more than 200 times")


def test_a_parquet_file_that_claims_too_much_is_refused(tmp_path: Path) -> None:
    column = np.zeros(15_000_000, dtype=np.int8)
    pd.DataFrame({name: column for name in "abcde"}).to_parquet(tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", "claim to hold 15,000,000 rows")


@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1000000000000), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 2), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }",
        "{'descr': '<f8', 'fortran_order': ",
        "(((",
        "\x1b[31m",
    ],
)
def test_an_array_that_claims_more_than_it_holds_is_refused(tmp_path: Path, text: str) -> None:
    content = npy_header(text) + b"\0" * 64
    (tmp_path / "a.npy").write_bytes(content)
    refused(tmp_path / "a.npy", "expected complete arrays")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", content)
    refused(tmp_path / "a.npz", "expected complete arrays")


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.parquet", "a.csv.gz"])
def test_damaged_files_end_in_one_kind_of_error(tmp_path: Path, name: str) -> None:
    path, frame = tmp_path / name, pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40)})
    writers: dict[str, Any] = {
        "a.npy": lambda: np.save(path, frame.to_numpy()),
        "a.npz": lambda: np.savez(path, X=frame.to_numpy()),
        "a.parquet": lambda: frame.to_parquet(path),
        "a.csv.gz": lambda: frame.to_csv(path, index=False),
    }
    writers[name]()
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(whole)
        for place in rng.integers(len(whole), size=3):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            read(path)
        except ValueError as error:
            assert str(error).isprintable()  # noqa: PT017 - most damage is refused, some changes a number


def test_a_wide_table_is_read_as_a_narrow_one_is(tmp_path: Path) -> None:
    wide = pd.DataFrame(np.arange(6_000.0).reshape(2, 3_000), columns=[f"c{n}" for n in range(3_000)])
    wide.to_csv(tmp_path / "a.csv", index=False)
    data = read(tmp_path / "a.csv")
    assert np.array_equal(data.X, wide.to_numpy())
    assert data.feature_names == tuple(wide.columns)
