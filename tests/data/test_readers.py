"""Every reader on files written here: the rows and labels it returns, and its errors."""

import csv
import gzip
import io
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offmap.data import Data, DataNotFound, load, open_data, read

REPEATABLE = settings(deadline=None, derandomize=True, max_examples=40)
X = np.arange(12.0).reshape(4, 3)
Y = np.array([0, 1, 0, 1])


def save(path: Path, **arrays: np.ndarray) -> Path:
    np.savez(path, allow_pickle=True, **arrays)
    return path


def labels(data: Data) -> list[object]:
    assert data.y is not None
    return data.y.tolist()


@pytest.mark.parametrize("key", ["X", "x", "x_test", "X_test", "features"])
def test_npz_finds_the_only_rows_there_are(tmp_path: Path, key: str) -> None:
    assert np.array_equal(read(save(tmp_path / "rows.npz", **{key: X})).X, X)


@pytest.mark.parametrize(("x_key", "y_key"), [("X", "y"), ("x", "y"), ("x_dev", "y_dev"), ("X_dev", "y_dev")])
def test_npz_pairs_rows_with_their_labels(tmp_path: Path, x_key: str, y_key: str) -> None:
    data = read(str(save(tmp_path / "rows.npz", **{x_key: X, y_key: Y, "other": Y[:2]})))
    assert np.array_equal(data.X, X)
    assert labels(data) == [0, 1, 0, 1]


def test_npz_with_several_splits_needs_one_named(tmp_path: Path) -> None:
    path = save(tmp_path / "rows.npz", x_train=X, y_train=Y, x_test=X[:2] + 1, y_test=Y[:2])
    with pytest.raises(ValueError, match="its keys are x_train, y_train, x_test, y_test"):
        read(path)
    with pytest.raises(ValueError, match="must have the key x_dev; its keys are"):
        read(path, split="dev")
    assert np.array_equal(read(path, split="test").X, X[:2] + 1)
    assert len(open_data(f"{path}:train")) == 4


def test_a_cell_of_two_lines_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('a,b\n"1\n2",3\n4,5\n', encoding="utf-8")
    frame = read(path).frame
    assert frame is not None
    assert frame["a"].tolist() == ["1\n2", "4"]


def test_names_of_arrays_reach_no_terminal_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="its keys are") as refusal:
        read(save(tmp_path / "rows.npz", **{"\x1b[31m": X, "y": Y}))
    assert str(refusal.value).isprintable()


def test_npz_refuses_rows_under_two_names(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="its keys are X, x"):
        read(save(tmp_path / "rows.npz", X=X, x=X))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": X, "y": Y[:2]}, r"y must have shape \(4,\)"),
        ({"X": X[:0]}, "at least one row"),
        ({"X": Y}, "two or more dimensions"),
        ({"X": X.astype("datetime64[s]")}, "not datetime64"),
        ({"X": np.array([{}, {}])}, "cannot be read"),
        ({"X": X, "y": np.array([None] * 4)}, "cannot be read"),
    ],
)
def test_npz_refuses_what_is_no_data(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(save(tmp_path / "rows.npz", **arrays))


def test_npy_holds_rows_or_texts(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", X.astype(np.uint8))
    np.save(tmp_path / "texts.npy", np.array(["a b", "c"]))
    assert read(tmp_path / "rows.npy").X.dtype == np.uint8
    assert read(tmp_path / "texts.npy").kind == "text"


@pytest.mark.parametrize("name", ["a.npz", "a.npy", "a.csv", "a.tsv.gz", "a.csv.gz", "a.parquet", "folder/a.png"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00 no such format \x00\xff"])
def test_rubbish_is_refused_by_name(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{path} cannot be read as"):
        read(tmp_path / name.split("/")[0])


def array_bytes(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def archive_bytes(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


ROWS = array_bytes(X)
BROKEN_ARRAYS = {
    "text.npy": b"a,b\n1,2\n",
    "pickle.npy": pickle.dumps([1]),
    "cut.npy": ROWS[:-9],
    "archive.npy": archive_bytes(X=ROWS),
    "objects.npy": array_bytes(np.array([{}, {}])),
    "text.npz": b"a,b\n1,2\n",
    "pickle.npz": pickle.dumps([1]),
    "cut.npz": archive_bytes(X=ROWS)[:-9],
    "array.npz": ROWS,
    "text_inside.npz": archive_bytes(X=b"a,b\n1,2\n"),
    "pickle_inside.npz": archive_bytes(X=pickle.dumps([1])),
    "changed_inside.npz": archive_bytes(X=ROWS).replace(ROWS[-8:], b"changed!"),
    "objects_inside.npz": archive_bytes(X=array_bytes(np.array([{}, {}]))),
}


@pytest.mark.parametrize("name", BROKEN_ARRAYS)
def test_broken_arrays_are_refused_without_advice_on_pickles(tmp_path: Path, name: str) -> None:
    """NumPy's own message for an unknown format says how to unpickle it."""
    path = tmp_path / name
    path.write_bytes(BROKEN_ARRAYS[name])
    form = "an .npz archive, as np.savez writes it" if path.suffix == ".npz" else "an .npy array, as np.save writes it"
    with pytest.raises(ValueError, match=re.escape(f"{path} cannot be read as {form}: ")) as refusal:
        read(path)
    assert "pickle" not in str(refusal.value).replace(name, "")


def test_files_beside_the_arrays_of_an_archive_are_passed_over(tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", rows=X)
    with zipfile.ZipFile(tmp_path / "rows.npz", "a") as archive:
        archive.writestr("README.txt", "what the rows are")
    np.testing.assert_array_equal(read(tmp_path / "rows.npz").X, X)


def write(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix.lower() == ".parquet":
        frame.to_parquet(path)
    elif ".tsv" in path.name.lower():
        frame.to_csv(path, sep="\t", index=False, quoting=csv.QUOTE_NONE)
    else:
        frame.to_csv(path, index=False)
    return path


TABLES = pytest.mark.parametrize(
    "name", ["a.csv", "a.csv.gz", "a.tsv", "a.tsv.gz", "a.parquet", "A.CSV", "A.TSV", "A.PARQUET"]
)


@TABLES
def test_table_of_numbers(tmp_path: Path, name: str) -> None:
    frame = pd.DataFrame({"height": [1.5, 2.5], "kind": ["oak", "elm"], "age": [3, 4], "alive": [True, False]})
    data = read(write(frame, tmp_path / name), label="kind")
    assert data.X.dtype == np.float64
    assert data.X.tolist() == [[1.5, 3, 1], [2.5, 4, 0]]
    assert labels(data) == ["oak", "elm"]


@TABLES
def test_table_of_texts(tmp_path: Path, name: str) -> None:
    frame = pd.DataFrame({"say": ['He said "no"', "NA"], "intent": ["null", "None"], "extra": [1, 2]})
    data = read(write(frame, tmp_path / name), text="say", label="intent")
    assert data.X.tolist() == ['He said "no"', "NA"]
    assert labels(data) == ["null", "None"]
    assert read(tmp_path / name, text="say").y is None


def test_texts_that_look_like_numbers_stay_texts(tmp_path: Path) -> None:
    data = read(write(pd.DataFrame({"say": ["007", "1e3"], "code": [7, 8]}), tmp_path / "a.csv"), "say", "code")
    assert data.X.tolist() == ["007", "1e3"]
    assert labels(data) == [7, 8]


@REPEATABLE
@given(st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2), min_size=1))
def test_numbers_survive_a_csv(tmp_path_factory: pytest.TempPathFactory, rows: list[list[float]]) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    pd.DataFrame(rows, columns=["a", "b"]).to_csv(path, index=False)
    np.testing.assert_allclose(read(path).X, rows, rtol=1e-14)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a,b\n1,\n2,y\n", {"label": "b"}, "column 'b' of .* has 1 missing"),
        ("a,b\n,x\nhey,y\n", {"text": "a", "label": "b"}, "column 'a' of .* has 1 missing"),
        ("a,b\n1,2\n", {"label": "c"}, "label must be a column of .*, not 'c'; it has 'a', 'b'"),
        ("a,b\n1,2\n", {"text": "c"}, "text must be a column of .*, not 'c'; it has 'a', 'b'"),
        ("a,b\n1,2\n", {"text": "a", "label": "a"}, "must be two different columns"),
        ("a\n1\n", {"label": "a"}, "must have at least one column besides the label"),
        ("a,b\n", {}, "must have at least one row"),
        ("a,b\n1,2,3\n4,5,6\n", {}, "line 2 has 3 cells, the header 2"),
        ("a,b\n0,2,3\n1,5,6\n", {}, "line 2 has 3 cells, the header 2"),
        ("a,b\n1,2\n4,5,6\n", {}, "cannot be read as a table"),
        ("text\nhello\n\nthere\n", {"text": "text"}, "column 'text' of .* has 1 missing values in 3 rows"),
    ],
)
def test_table_refuses(tmp_path: Path, content: str, options: dict[str, Any], message: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "a.csv", **options)


def test_missing_texts_and_labels_are_refused(tmp_path: Path) -> None:
    path = write(pd.DataFrame({"a": [1.0, None, None], "b": ["x", None, "y"]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"column 'b' of .* has 1 missing values in 3 rows \(row 1 is the first"):
        read(path, text="b")
    with pytest.raises(ValueError, match=r"column 'a' of .* has 2 missing values in 3 rows \(row 1 is the first"):
        read(path, label="a")


def test_gaps_and_words_among_the_features_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,c\n1,x,007\n,NA,010\n2.5,,3\n")
    data = read(tmp_path / "a.csv")
    assert data.kind == "table"
    assert data.frame is not None
    assert data.frame["a"].isna().tolist() == [False, True, False]
    assert data.frame["b"].tolist() == ["x", "NA", ""]
    assert data.frame["c"].tolist() == ["007", "010", "3"]


def test_empty_lines_at_the_end_are_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,x\n2,y\n\n\n")
    assert read(tmp_path / "a.csv", label="b").X.tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["007", "010"], ["007", "010"]),
        (["7", "X7"], ["7", "X7"]),
        (["7", "0", "-3"], [7, 0, -3]),
        (["0.5", "1"], [0.5, 1.0]),
    ],
)
def test_labels_are_numbers_unless_that_would_change_them(
    tmp_path: Path, words: list[str], expected: list[object]
) -> None:
    (tmp_path / "a.csv").write_text("a,kind\n" + "".join(f"1,{word}\n" for word in words))
    y = read(tmp_path / "a.csv", label="kind").y
    assert y is not None
    assert y.tolist() == expected


def test_tsv_knows_no_quotes(tmp_path: Path) -> None:
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b'text\tlabel\n"open quote\ta\nnext\tb\n'))
    assert read(tmp_path / "a.tsv.gz", "text", "label").X.tolist() == ['"open quote', "next"]


def test_options_of_another_format_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "a.csv").write_text("a\n1\n")
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("a.npy", {"label": "y"}),
        ("a.npy", {"split": "test"}),
        ("a.csv", {"split": "test"}),
    ]
    for path, options in wrong:
        with pytest.raises(ValueError, match=f"{next(iter(options))} must be left out"):
            read(tmp_path / path, **options)


def test_unknown_format_lists_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"")
    with pytest.raises(ValueError, match=r"\.npz, \.npy, \.csv, .*\.parquet, .*, or a folder of images"):
        read(tmp_path / "a.xlsx")
    with pytest.raises(ValueError, match=r"a\.xlsx must be one of"):
        read(tmp_path / "a.xlsx", label="kind")


def test_missing_path_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file or folder .*gone\.csv"):
        read(tmp_path / "gone.csv")


def test_open_data_takes_paths_and_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("a,kind\n1,x\n")
    assert labels(open_data(str(tmp_path / "a.csv"), label="kind")) == ["x"]
    assert open_data("digits").X is load("digits").X
    assert open_data("digits:all").X is load("digits").X
    assert open_data("Digits", split="all").X is load("digits").X
    monkeypatch.chdir(tmp_path)
    np.save("wine", X)
    (tmp_path / "wine.npy").rename("wine")
    with pytest.raises(ValueError, match="wine must be one of"):
        open_data("wine")


@pytest.mark.parametrize("spec", ["", ":test", "no-such-set", "fashon-mnist:test", "gone.csv"])
def test_open_data_names_what_does_not_exist(spec: str) -> None:
    with pytest.raises(DataNotFound, match="is neither a file or folder nor a data set"):
        open_data(spec)


def test_open_data_refuses_options_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="split of 'digits' must be one of 'all', not 'test'"):
        open_data("digits:test")
    with pytest.raises(ValueError, match="split must be given once"):
        open_data("digits:all", split="test")
    with pytest.raises(ValueError, match="label must be left out"):
        open_data("digits", label="y")


@pytest.mark.parametrize(
    ("rows", "y", "message"),
    [
        (np.array(1.0), None, "at least one row"),
        (np.array(["a"]), None, "1-D array of strings, not <U1"),
        (X, np.zeros((4, 1)), r"y must have shape \(4,\)"),
    ],
)
def test_data_checks_itself(rows: np.ndarray, y: np.ndarray | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Data(rows, y)


CELLS = ["0", "7", "-12", "+3", "1.5", ".5", "2.", "1e3", "-0.25E-2", "007", "00.5", " 4 ", "", "NA", "x", "1_000", "٣"]


@REPEATABLE
@given(st.lists(st.sampled_from(CELLS), min_size=1, max_size=4))
def test_a_column_is_numbers_if_every_cell_is_one(tmp_path_factory: pytest.TempPathFactory, cells: list[str]) -> None:
    path = tmp_path_factory.mktemp("cells") / "a.csv"
    pd.DataFrame({"a": cells, "b": "word"}).to_csv(path, index=False)
    frame = read(path).frame
    assert frame is not None
    gaps = [cell in ("", "NA") for cell in cells]
    plain = [bool(re.fullmatch(r" ?[+-]?(\d+\.?\d*|\.\d+)([eE]-?\d+)? ?", cell, re.ASCII)) for cell in cells]
    numbers = all(a or b for a, b in zip(gaps, plain, strict=True)) and any(plain) and "007" not in cells
    assert pd.api.types.is_numeric_dtype(frame["a"]) == numbers
    if numbers:
        expected = [np.nan if gap else float(cell) for cell, gap in zip(cells, gaps, strict=True)]
        np.testing.assert_array_equal(frame["a"].to_numpy(dtype=float), expected)
