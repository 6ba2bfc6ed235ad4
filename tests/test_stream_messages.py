"""What is wrong with a file is said alike whether it is read as a whole or in batches: column, row, cell and remedy."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from offmap.collaborative import ClosedFormDetector, RatioDetector
from offmap.data import ColumnsLeftOut
from offmap.data.readers import read
from offmap.data.roles import Roles
from offmap.density import MahalanobisDetector, VAEDetector
from offmap.scale import score_batches
from offmap.workflow import configure, fit_model, score_rows, scoring_roles
from tests.scale.tables import NAMES, numbers, write

pytestmark = pytest.mark.filterwarnings(f"ignore::{ColumnsLeftOut.__module__}.{ColumnsLeftOut.__name__}")


def whole(model: Any, path: Path) -> pd.DataFrame:
    """The scores of a file that is read at once, unknown entities flagged."""
    roles, optional = scoring_roles(model, Roles())
    return score_rows(model, read(path, roles=roles, optional=optional), new_entities="flag")


def in_batches(model: Any, path: Path) -> pd.DataFrame:
    """The scores of the same file in batches."""
    return pd.concat(score_batches(model, path, part_rows=200), ignore_index=True)


both = pytest.mark.parametrize("score", [whole, in_batches])
Score = Callable[[Any, Path], pd.DataFrame]


def of_entities(ids: list[Any]) -> ClosedFormDetector:
    """A model of these entities, which remembers their column."""
    entities = np.resize(np.array(ids), 400)
    model = ClosedFormDetector(random_state=0).fit(numbers(400)[NAMES], entities)
    model.roles_ = Roles(entity="user", drop=("id",)).to_dict()
    return model


def written(frame: pd.DataFrame, path: Path) -> Path:
    """Writes a table as the name of its file says."""
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
        return path
    return write(frame, path, group=200)


@both
@pytest.mark.parametrize("ids", [["a", "b", "1", "2", "03"], [1, 2]])
def test_ids_of_entities_that_are_floats_are_refused(tmp_path: Path, score: Score, ids: list[Any]) -> None:
    path = written(numbers(4, seed=1).assign(user=[1.0, 2.0] * 2), tmp_path / "rows.parquet")
    message = r"column 'user' of .*rows\.parquet must hold integers or texts.*it holds float64; write whole numbers"
    with pytest.raises(ValueError, match=message):
        score(of_entities(ids), path)


@both
def test_integers_are_ids_of_a_model_of_texts(tmp_path: Path, score: Score) -> None:
    path = written(numbers(4, seed=1).assign(user=[1, 2] * 2), tmp_path / "rows.parquet")
    found = score(of_entities(["a", "b", "1", "2", "03"]), path)
    assert found["entity"].tolist() == ["1", "2", "1", "2"]
    assert np.isfinite(found["novelty"]).all()


@both
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("named", [True, False])
def test_a_cell_that_is_no_finite_number_is_named_by_its_row_in_the_file(
    tmp_path: Path, score: Score, suffix: str, value: float, named: bool
) -> None:
    frame = numbers(500)[NAMES]
    model = MahalanobisDetector(random_state=0).fit(frame if named else frame.to_numpy())
    frame.loc[450, "v"] = value
    path = written(frame, tmp_path / f"rows{suffix}")
    with pytest.raises(ValueError, match="row 450, column " + ("'v'" if named else "")):
        score(model, path)


@pytest.mark.parametrize("index", [range(40, 50), [*range(49, 39, -1)]])
def test_rows_of_a_frame_are_named_by_an_index_of_integers(index: Any) -> None:
    frame = numbers(10)[NAMES].set_axis(pd.Index(index), axis=0)
    frame.iloc[3, 1] = np.nan
    model = MahalanobisDetector(random_state=0).fit(numbers(400)[NAMES])
    with pytest.raises(ValueError, match=f"row {index[3]}, column 'v' is missing"):
        model.novelty(frame)
    with pytest.raises(ValueError, match="row 3, column 'v' is missing"):
        model.novelty(frame.set_axis([*"abcdefghij"], axis=0))
    texts = frame.astype(object)
    texts.iloc[5, 2] = "much"
    with pytest.raises(ValueError, match=f"row {index[5]}, column 'w' is 'much'"):
        model.novelty(texts)


@both
@pytest.mark.parametrize(("cells", "bad"), [(("true", "false"), "maybe"), (("1", "0"), "2"), (("1", "0"), "maybe")])
def test_one_bad_cell_among_truth_values_is_named_alone(
    tmp_path: Path, score: Score, cells: tuple[str, str], bad: str
) -> None:
    frame = numbers(200).assign(flag=np.resize(["yes", "no"], 200))
    model = fit_model(configure("mahalanobis"), read(written(frame, tmp_path / "train.csv")))
    new = numbers(200, seed=1).assign(flag=np.resize(cells, 200))
    new.loc[150, "flag"] = bad
    message = f"column 'flag' is a boolean, but row 150 holds '?{bad}'? \\(mend the cell"
    with pytest.raises(ValueError, match=message):
        score(model, written(new, tmp_path / "new.csv"))


@both
@pytest.mark.parametrize("cell", ["abc", "007", "1.5"])
def test_a_cell_that_is_no_integer_among_integer_ids_is_named(tmp_path: Path, score: Score, cell: str) -> None:
    users = np.resize([*"0123456789"], 500).astype(object)
    users[450] = cell
    path = written(numbers(500, seed=1).assign(user=users), tmp_path / "rows.csv")
    with pytest.raises(ValueError, match=rf"'{re.escape(cell)}'.*leave the row out") as refusal:
        score(of_entities([*range(10)]), path)
    if score is in_batches:
        assert "column 'user'" in str(refusal.value)
        assert "row 450" in str(refusal.value)


RAGGED = "u,v\n0.1,0.2\n0.3,0.4\n0,5,0.6\n"


@both
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (RAGGED, "line 4 has 3 cells, the header 2; the comma separates: put cells that hold it in quotes"),
        ("u,v\n0,1,0.2\n0,3,0.4\n", "line 2 has 3 cells, the header 2; the comma separates"),
        ("u,v\n0.1,0.2,\n0.3,0.4,\n0,5,0.6\n", "line 4 has 3 cells, the header 2; the comma separates"),
        ("u,v\n" + "1,2\n" * 300 + "1,2,3\n", "line 302 has 3 cells, the header 2; the comma separates"),
    ],
)
def test_a_line_of_too_many_cells_is_named(tmp_path: Path, score: Score, content: str, message: str) -> None:
    (tmp_path / "rows.csv").write_text(content)
    model = MahalanobisDetector(random_state=0).fit(numbers(400)[["u", "v"]])
    with pytest.raises(ValueError, match=rf"rows\.csv cannot be read as a table: {message}"):
        score(model, tmp_path / "rows.csv")


def test_a_comma_at_the_end_of_every_row_makes_no_difference(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("u,v\n" + "0.1,0.2,\n0.3,0.4,\n" * 150)
    model = MahalanobisDetector(random_state=0).fit(numbers(400)[["u", "v"]])
    found = in_batches(model, tmp_path / "rows.csv")
    assert len(found) == 300
    pd.testing.assert_frame_equal(found, whole(model, tmp_path / "rows.csv"), check_exact=True)


def pairs(folder: Path, **changed: Any) -> Path:
    """A folder with two files of pairs of a user and an item; of the second, some columns may be others."""
    rng = np.random.default_rng(0)
    (folder / "pairs").mkdir()
    for name, columns in (("a", {}), ("b", changed)):
        frame = pd.DataFrame({"user": np.resize(np.arange(20), 400), "item": rng.integers(50, size=400)})
        write(frame.assign(**columns), folder / "pairs" / f"{name}.parquet", group=150)
    return folder / "pairs"


ITEMS = np.random.default_rng(1).normal(size=(50, 3))


def closed_form(folder: Path) -> ClosedFormDetector:
    """A model of the pairs in files, with the features of a sample."""
    sample = ClosedFormDetector(random_state=0).fit(ITEMS, np.resize(np.arange(20), 400), rows=np.arange(400) % 50)
    return sample.fit_files(folder, entity="user", row="item", X=ITEMS)


def two_towers(folder: Path) -> RatioDetector:
    """Networks that learn from the pairs in files."""
    towers = RatioDetector(head="two_tower", embedding_size=2, epochs=1, random_state=0)
    return towers.fit_files(folder, entity="user", row="item", X=ITEMS, train=True)


def _with(value: Any, kind: Any = object) -> Any:
    column = pd.Series(np.resize(np.arange(20), 400)).astype(kind)
    column[317] = value
    return column


@pytest.mark.parametrize("fit_files", [closed_form, two_towers])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"user": np.resize(["ann", "bob"], 400)},
            r"b\.parquet: the column 'user' holds (large_)?string, but int64 in .*a\.parquet; write it with one type",
        ),
        ({"user": _with(None, "Int64")}, r"b\.parquet: the column 'user' has a gap in row 317; fill it, or remove"),
        ({"user": _with(np.nan, float)}, r"b\.parquet: the column 'user' has a gap in row 317; fill it, or remove"),
        ({"item": _with(99, int)}, r"b\.parquet: the column 'item' holds 99 in row 317, but rows must be from 0 to 49"),
        ({"item": _with(-1, int)}, r"b\.parquet: the column 'item' holds -1 in row 317, but rows must be from 0 to 49"),
        ({"item": _with(0.5, float)}, r"b\.parquet: the column 'item' must hold whole numbers; got 0\.5 in row 317"),
    ],
)
def test_pairs_that_do_not_fit_are_named_by_file_and_column(
    tmp_path: Path, fit_files: Callable[[Path], Any], changed: dict[str, Any], message: str
) -> None:
    folder = pairs(tmp_path, **changed)
    with pytest.raises(ValueError, match=message):
        fit_files(folder)


def test_an_empty_file_of_pairs_may_have_any_type(tmp_path: Path) -> None:
    folder = pairs(tmp_path)
    pd.DataFrame({"user": pd.Series([], dtype=str), "item": pd.Series([], dtype=int)}).to_parquet(folder / "c.parquet")
    assert len(closed_form(folder).entity_ids_) == 20


@pytest.mark.parametrize("name", ["rows.pq", "rows.PQ"])
def test_both_names_of_parquet_are_read_everywhere(tmp_path: Path, name: str) -> None:
    frame = numbers(300)[NAMES]
    path = write(frame, tmp_path / name)
    model = MahalanobisDetector(random_state=0).fit(frame)
    pd.testing.assert_frame_equal(in_batches(model, path), whole(model, path), check_exact=True)
    assert VAEDetector(epochs=1, random_state=0).fit(tmp_path).input_shape_ == (3,)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["a.jsonl", "b.jsonl"],
            r"holds no images \(\.png, \.jpg, \.jpeg\) but files that end in \.jsonl; give one file",
        ),
        (
            ["a.parquet"],
            r"holds no images .* but files that end in \.parquet; give one file, or read the folder .*--out",
        ),
        (["day=1/a.csv.gz", "b.txt"], r"but files that end in \.csv\.gz, \.txt; give one file, or read the folder"),
        ([], r"holds no images \(\.png, \.jpg, \.jpeg\) and no other file"),
    ],
)
def test_a_folder_without_images_says_what_it_holds(tmp_path: Path, names: list[str], message: str) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    for label in (None, "kind"):
        with pytest.raises(ValueError, match=message):
            read(tmp_path, label=label)


def test_training_from_disk_says_that_it_reads_parquet_only(tmp_path: Path) -> None:
    path = written(numbers(300)[NAMES], tmp_path / "rows.csv")
    with pytest.raises(ValueError, match=r"rows\.csv is no Parquet file, the one format that is read piece by piece"):
        VAEDetector(epochs=1).fit(path)
