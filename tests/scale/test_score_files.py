"""Scores of files: the bytes of scoring in memory, whatever the files, the parts and the format."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from offmap.collaborative import ClosedFormDetector
from offmap.data import ColumnsLeftOut, TextEncoder
from offmap.data.readers import read
from offmap.data.roles import Roles
from offmap.density import MahalanobisDetector
from offmap.openset import MSPClassifier
from offmap.scale import score_batches, score_files, threads
from offmap.scale.scoring import score_part
from offmap.workflow import configure, fit_model, score_rows, scoring_roles
from tests.scale.tables import NAMES, fitted, in_memory, numbers, write

pytestmark = pytest.mark.filterwarnings(f"ignore::{ColumnsLeftOut.__module__}.{ColumnsLeftOut.__name__}")


@pytest.mark.parametrize("part_rows", [7, 150, None])
@pytest.mark.parametrize("workers", [1, 3])
def test_parquet_gives_the_bytes_of_scoring_in_memory(tmp_path: Path, part_rows: int | None, workers: int) -> None:
    model, frame = fitted(), numbers(1000, seed=1)
    source = write(frame, tmp_path / "rows.parquet")
    done = score_files(model, source, tmp_path / "s.parquet", part_rows=part_rows, workers=workers)
    expected = in_memory(model, frame)
    pd.testing.assert_frame_equal(pd.read_parquet(done.out), expected, check_exact=True)
    assert (done.rows, done.novel) == (1000, int(expected["novel"].sum()))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.parquet", "s.parquet"]


@pytest.mark.parametrize("kind", ["float16", "float32", "int8", "int64", "uint64", "float32 float64", "int64 float32"])
def test_numbers_of_every_type_give_the_bytes_of_scoring_in_memory(tmp_path: Path, kind: str) -> None:
    """Large integers too, which lose their last digits at other places if they pass through another type."""
    scale = {"int64": 2.0**58, "uint64": 2.0**58}.get(kind, 30.0)
    frame = (numbers(500, seed=1)[NAMES] * scale).abs()
    frame = frame.astype(dict(zip(NAMES, kind.split() * 3, strict=False)))
    model = MahalanobisDetector(random_state=0).fit(frame[:200])
    found = pd.concat(score_batches(model, write(frame, tmp_path / "rows.parquet"), part_rows=150), ignore_index=True)
    pd.testing.assert_frame_equal(found.drop(columns="row"), model.assess(frame).to_frame(), check_exact=True)


@pytest.mark.parametrize("kind", ["Float64", "float64", "Int64"])
def test_a_gap_among_numbers_is_refused_as_in_memory(tmp_path: Path, kind: Any) -> None:
    frame = (numbers(300)[NAMES] * 10).round().astype(kind)
    frame.loc[217, "v"] = None
    with pytest.raises(ValueError, match=r"rows\.parquet.*NaN"):
        list(score_batches(fitted(), write(frame, tmp_path / "rows.parquet")))


@pytest.mark.parametrize("name", ["s.parquet", "s.csv", "s.jsonl", "folder"])
def test_every_format_holds_the_same_numbers(tmp_path: Path, name: str) -> None:
    model, frame = fitted(), numbers(300, seed=1)
    source, out = write(frame, tmp_path / "rows.parquet"), tmp_path / name
    score_files(model, source, out, part_rows=100)
    readers: dict[str, Any] = {".csv": pd.read_csv, ".jsonl": lambda path: pd.read_json(path, lines=True)}
    found = readers.get(out.suffix, pd.read_parquet)(out)
    pd.testing.assert_frame_equal(found, in_memory(model, frame), check_exact=name != "s.jsonl")
    if name == "folder":
        assert len(list(out.glob("part-*.parquet"))) == 3


def test_a_folder_of_files_is_one_table_in_the_order_of_paths(tmp_path: Path) -> None:
    model, frame = fitted(), numbers(500, seed=1)
    (tmp_path / "rows").mkdir()
    for place, start in enumerate((0, 30, 330)):
        end = (30, 330, 500)[place]
        write(frame[start:end], tmp_path / "rows" / f"{place}.parquet")
    write(frame[:0], tmp_path / "rows" / "1-empty.parquet")
    found = pd.concat(score_batches(model, tmp_path / "rows", part_rows=64), ignore_index=True)
    pd.testing.assert_frame_equal(found, in_memory(model, frame), check_exact=True)


def mixed(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "payment": [f"p{number:04d}" for number in range(rows)],
            # Texts that look like numbers, of which one late row decides whether they are.
            "tariff": rng.choice(["1.50", "2.0", "3"], rows),
            "zip": np.where(np.arange(rows) == rows - 1, "01234", rng.choice(["75001", "10115"], rows)),
            "amount": rng.normal(50, 9, rows).round(2),
            "age": np.where(rng.random(rows) < 0.1, "", rng.integers(18, 90, rows).astype(str)),
            "on": rng.choice(["2025-01-31", "2025-06-01 12:30"], rows),
            "paid": rng.choice(["true", "false"], rows),
        }
    )


@pytest.mark.parametrize("late", ["free", "1.50"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet"])
def test_tables_of_all_kinds_in_batches_are_the_table_as_a_whole(tmp_path: Path, suffix: str, late: str) -> None:
    train, new = mixed(300, 0), mixed(200, 1)
    # In training the tariffs are texts, so that "1.50" is known by its text.
    train["tariff"] = np.resize(["1.50", "free", "half", "double"], 300)
    new.loc[199, "tariff"] = late
    for name, frame in (("train", train), ("new", new)):
        path = tmp_path / f"{name}{suffix}"
        if suffix == ".parquet":
            write(frame, path)
        else:
            frame.to_csv(path, index=False, sep="\t" if "tsv" in suffix else ",")
    roles = Roles(id=("payment",))
    model = fit_model(configure("nearest-neighbor"), read(tmp_path / f"train{suffix}", roles=roles), roles)
    expected = score_rows(model, read(tmp_path / f"new{suffix}", roles=scoring_roles(model, roles)[0]))
    found = pd.concat(score_batches(model, tmp_path / f"new{suffix}", part_rows=60), ignore_index=True)
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_a_classifier_names_labels_and_keeps_columns_that_have_the_names_of_scores(tmp_path: Path) -> None:
    frame = numbers(300)
    model = MSPClassifier(epochs=1, random_state=0).fit(frame[NAMES], np.where(frame["u"] > 0, "right", "left"))
    source = write(frame.assign(label="given"), tmp_path / "rows.parquet")
    roles = Roles(id=("id",), keep=("label",), drop=("label",))
    (found,) = score_batches(model, source, roles=roles)
    verdict = model.assess(frame[NAMES])
    assert list(found) == ["row", "id", "input_label", "novelty", "p_value", "novel", "label", "closest"]
    assert found["label"].tolist() == verdict.label.tolist()  # type: ignore[union-attr]
    assert set(found["input_label"]) == {"given"}


@pytest.mark.parametrize("rule", ["flag", "skip"])
def test_entities_whose_names_look_like_numbers_in_some_batches(tmp_path: Path, rule: Any) -> None:
    frame = numbers(400)
    frame["id"] = np.where(np.arange(400) < 200, "7", "a")
    model = ClosedFormDetector(random_state=0).fit(frame[NAMES], frame["id"].to_numpy(dtype=str))
    new = numbers(100, seed=1)
    new["id"] = np.where(np.arange(100) % 2, "7", "new")
    new.to_csv(tmp_path / "rows.csv", index=False)
    roles = Roles(entity="id", only=("u", "v", "w"), keep=("u",))
    parts = list(score_batches(model, tmp_path / "rows.csv", roles=roles, new_entities=rule, part_rows=25))
    found = pd.concat(parts, ignore_index=True)
    expected = score_rows(model, read(tmp_path / "rows.csv", roles=roles), new_entities=rule)
    pd.testing.assert_frame_equal(found, expected, check_exact=True, check_dtype=False)
    assert len(found) == (100 if rule == "flag" else 50)


def test_texts_are_encoded_in_parts_of_few_rows(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    texts = [f"{verb} my {thing}" for verb in ("pay", "lose", "find", "sell") for thing in ("card", "bill", "key")] * 5
    frame = pd.DataFrame({"number": range(60), "said": texts})
    roles = Roles(text="said", keep=("number",))
    detector = MahalanobisDetector(calibration=0.4, random_state=0, encoder=TextEncoder(cache=False)).fit(texts)
    source = write(frame, tmp_path / "rows.parquet", group=40)
    parts = list(score_batches(detector, source, roles=roles, part_rows=16))
    assert [len(part) for part in parts] == [16, 16, 8, 16, 4]
    expected = score_rows(detector, read(source, roles=roles))
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), expected, check_exact=True)


def test_ids_with_gaps_stay_integers(tmp_path: Path) -> None:
    model, frame = fitted(), numbers(200, seed=1)
    frame["id"] = pd.array([2**62 + 1, None] * 100, dtype="Int64")
    done = score_files(model, write(frame, tmp_path / "rows.parquet"), tmp_path / "s.csv", part_rows=100)
    assert pd.read_csv(done.out, dtype=str)["id"].tolist()[:1] == [str(2**62 + 1)]


def test_a_table_without_rows_gives_the_columns(tmp_path: Path) -> None:
    model = fitted()
    source = write(numbers(5)[:0], tmp_path / "rows.parquet")
    for name in ("s.parquet", "folder"):
        assert score_files(model, source, tmp_path / name).rows == 0
        assert list(pd.read_parquet(tmp_path / name)) == ["row", "id", "novelty", "p_value", "novel"]


def test_the_number_of_torch_threads_is_as_before(tmp_path: Path) -> None:
    import torch

    before = torch.get_num_threads()
    list(score_batches(fitted(), write(numbers(50), tmp_path / "rows.parquet")))
    assert torch.get_num_threads() == before


def test_torch_starts_no_threads_within_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []

    def observed(*arguments: Any) -> Any:
        libraries = [each for each in threadpool_info() if "torch" in each["filepath"]]
        found.extend(each["num_threads"] for each in libraries)
        return score_part(*arguments)

    monkeypatch.setattr(threads, "score_part", observed)
    list(score_batches(fitted(), write(numbers(400), tmp_path / "rows.parquet"), part_rows=100, workers=2))
    assert set(found) == {1}


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    model, source = fitted(), write(numbers(50), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="new_entities"):
        score_files(model, source, tmp_path / "s.csv", new_entities="add")
    with pytest.raises(ValueError, match="engine must be"):
        score_files(model, source, tmp_path / "s.csv", engine="spark")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ray_address needs"):
        score_files(model, source, tmp_path / "s.csv", ray_address="host:1")
    with pytest.raises(ValueError, match="workers must be"):
        score_files(model, source, tmp_path / "s.csv", workers=0)
    with pytest.raises(ValueError, match="part_rows must be"):
        score_files(model, source, tmp_path / "s.csv", part_rows=0)
    with pytest.raises(ValueError, match="must end in"):
        score_files(model, source, tmp_path / "s.xlsx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.parquet"]
