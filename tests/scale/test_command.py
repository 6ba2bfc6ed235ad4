"""``offmap score`` from files to files."""

from pathlib import Path

import pandas as pd
import pytest

from offmap.commands import app
from tests.command_line import Run
from tests.scale.tables import fitted, in_memory, numbers, write


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fitted().save("model.safetensors")
    write(numbers(300, seed=1), tmp_path / "rows.parquet")
    numbers(100, seed=2).to_csv("known.csv", index=False)


def test_a_file_and_a_folder_give_the_scores_and_a_summary(run: Run, tmp_path: Path) -> None:
    expected = in_memory(fitted(), numbers(300, seed=1))
    done = run("score", "model.safetensors", "rows.parquet", "--out", "s.parquet", "--resume", "--json")
    assert done.data == {"out": "s.parquet", "rows": 300, "novel": int(expected["novel"].sum())}
    pd.testing.assert_frame_equal(pd.read_parquet("s.parquet"), expected, check_exact=True)
    (tmp_path / "days" / "day=1").mkdir(parents=True)
    (tmp_path / "rows.parquet").rename(tmp_path / "days" / "day=1" / "rows.parquet")
    assert run("score", "model.safetensors", "days", "--out", "scores", "--keep", "day", "--workers", "2").code == 0
    found = pd.read_parquet("scores")
    assert set(found.pop("day")) == {1}
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_rows_on_the_command_line_are_the_same_in_memory(run: Run) -> None:
    printed = run("score", "model.safetensors", "rows.parquet", "--json").data
    run("score", "model.safetensors", "rows.parquet", "--out", "s.jsonl", "-q")
    written = pd.read_json("s.jsonl", lines=True)
    pd.testing.assert_frame_equal(pd.DataFrame(printed), written)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rows.parquet", "--resume"), "--resume needs files that are scored in batches"),
        (("rows.parquet", "--out", "s.csv", "--top", "3", "--engine", "ray"), "--engine ray needs files that are"),
        (("rows.parquet", "--out", "scores", "--explain", "1"), "a folder as --out needs files that are"),
        ((".",), "the folder . needs files that are scored in batches"),
        (("rows.parquet", "--out", "s.csv", "--entity", "id"), "--entity must be left out"),
        (("rows.parquet", "--out", "rows.parquet"), "it is read as well"),
        ((".", "--out", "scores"), "scores lies in the folder ., which is read; name another place"),
        (("rows.parquet", "--out", "s.csv", "--keep", "nothing"), "keep must be a column of rows.parquet"),
        (("rows.parquet", "--known", "known.csv", "--out", "known.csv"), "cannot write known.csv: it is read as well"),
        (
            ("rows.parquet", "--explain", "1", "--reference", "known.csv", "--out", "known.csv"),
            "cannot write known.csv: it is read as well",
        ),
        (("rows.parquet", "--reference", "known.csv"), "add --explain, or leave it out"),
        (("rows.parquet", "--json", "--jsonl"), "give either --json or --jsonl"),
        (("rows.parquet", "--jsonl", "--out", "o.csv"), "give --out a name in .jsonl"),
        (("rows.parquet", "--new-entities", "error"), "--new-entities is for models of entities"),
        (("rows.parquet", "--out", "s.csv", "--ray-address", "host:1"), 'ray_address needs engine="ray"'),
    ],
)
def test_options_that_do_not_go_together_are_refused(run: Run, arguments: tuple[str, ...], message: str) -> None:
    done = run("score", "model.safetensors", *arguments)
    assert (done.code, done.out) == (app.EXIT_BAD_INPUT, "")
    assert message in done.err


@pytest.mark.filterwarnings("default::offmap.calibration.CalibrationWarning")
def test_known_rows_promise_the_rate_and_not_those_held_out_before(run: Run) -> None:
    alone = run("score", "model.safetensors", "rows.parquet", "--alpha", "0.012")
    assert "40 calibration rows cannot promise" in alone.err
    arguments = ("score", "model.safetensors", "rows.parquet", "--known", "known.csv")
    for stated in (("--alpha", "0.012"), ("--budget", "12/1000")):
        done = run(*arguments, *stated)
        assert (done.code, done.err) == (0, "")
    assert "100 calibration rows cannot promise" in run(*arguments, "--alpha", "0.001").err
