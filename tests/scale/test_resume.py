"""Runs that were stopped: what was written is valid, and no row is lost or doubled when they continue."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from offmap.errors import WorkFailed
from offmap.scale import score_files
from offmap.scale.results import JOURNAL
from tests.scale.tables import fitted, in_memory, numbers, write

PART = 50
RUN = """
import sys
from offmap.scale import score_files
score_files(sys.argv[1], sys.argv[2], sys.argv[3], part_rows=50, resume=True)
"""


def folder_of(tmp_path: Path, rows: int = 1000) -> Path:
    """Four files of as many rows, which are ``numbers(rows, seed=1)``."""
    (tmp_path / "rows").mkdir()
    frame, each = numbers(rows, seed=1), rows // 4
    for place in range(4):
        write(frame[place * each : (place + 1) * each], tmp_path / "rows" / f"{place}.parquet", group=PART)
    return tmp_path / "rows"


def test_a_run_that_is_killed_again_and_again_loses_and_doubles_no_row(tmp_path: Path) -> None:
    model, source = fitted(), folder_of(tmp_path, 6000)
    model.save(tmp_path / "model.safetensors")
    out, journal = tmp_path / "s.parquet", tmp_path / "s.parquet.parts" / JOURNAL
    command = [sys.executable, "-c", RUN, str(tmp_path / "model.safetensors"), str(source), str(out)]
    kills = 0
    for wanted in (10, 40, 10**9):
        with subprocess.Popen(command) as process:
            while process.poll() is None:
                if journal.exists() and journal.read_bytes().count(b"\n") > wanted:
                    process.kill()
                time.sleep(0.002)
        kills += process.returncode == -signal.SIGKILL
        if process.returncode:
            assert all(pq.read_metadata(path).num_rows == PART for path in journal.parent.glob("part-*.parquet"))
    assert (kills, process.returncode) == (2, 0)
    pd.testing.assert_frame_equal(pd.read_parquet(out), in_memory(model, numbers(6000, seed=1)), check_exact=True)
    assert not journal.parent.exists()


def test_a_line_of_the_journal_that_was_cut_short_is_a_part_that_is_not_done(tmp_path: Path) -> None:
    model, source, out = fitted(), folder_of(tmp_path), tmp_path / "scores"
    score_files(model, source, out, part_rows=PART)
    journal = out / JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    for end in range(1, 12):
        journal.write_bytes(b"".join(lines[:end]) + lines[end][: 7 * end])
        for later in sorted(out.glob("part-*"))[end:]:
            later.unlink()
        assert score_files(model, source, out, part_rows=PART, resume=True).rows == 1000
        assert journal.read_bytes() == b"".join(lines)
        pd.testing.assert_frame_equal(pd.read_parquet(out), in_memory(model, numbers(1000, seed=1)), check_exact=True)


def test_a_damaged_file_is_named_and_can_be_replaced(tmp_path: Path) -> None:
    model, source, out = fitted(), folder_of(tmp_path), tmp_path / "s.csv"
    damaged = source / "2.parquet"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:200] + b"\xff" * 2000 + whole[2200:])
    with pytest.raises(ValueError, match=r"2\.parquet.*500 scored rows are kept in .*s\.csv\.parts, and --resume"):
        score_files(model, source, out, part_rows=PART, workers=1)
    damaged.write_bytes(whole)
    assert score_files(model, source, out, part_rows=PART, resume=True).rows == 1000
    expected = in_memory(model, numbers(1000, seed=1))
    pd.testing.assert_frame_equal(pd.read_csv(out), expected, check_exact=True)


def test_a_file_without_an_end_and_one_without_a_column_stop_the_run_before_it_begins(tmp_path: Path) -> None:
    model, source, out = fitted(), folder_of(tmp_path), tmp_path / "s.parquet"
    cut = source / "3.parquet"
    whole = cut.read_bytes()
    cut.write_bytes(whole[:-100])
    with pytest.raises(ValueError, match=r"3\.parquet cannot be read as a Parquet table"):
        score_files(model, source, out)
    write(numbers(10).drop(columns="v"), cut)
    with pytest.raises(ValueError, match=r"3\.parquet lacks the column 'v', which .*0\.parquet has"):
        score_files(model, source, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows"]


def test_a_cell_that_cannot_be_read_is_named_by_file_and_row(tmp_path: Path) -> None:
    model, out = fitted(), tmp_path / "s.parquet"
    frame = numbers(300).astype({"w": object})
    frame.loc[217, "w"] = "seven"
    frame.to_csv(tmp_path / "rows.csv", index=False)
    told = r"rows\.csv.*seven.*200 scored rows are kept .* --resume goes on from there unless a file .* changes"
    with pytest.raises(ValueError, match=told):
        score_files(model, tmp_path / "rows.csv", out, part_rows=100)
    numbers(300).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(ValueError, match=r"rows\.csv has changed since its rows were scored; start anew"):
        score_files(model, tmp_path / "rows.csv", out, part_rows=100, resume=True)


@pytest.mark.parametrize(("name", "most"), [("s.parquet", 9_000), ("s.parquet", 40_000), ("s.csv", 40_000)])
def test_a_full_disk_keeps_what_was_written(tmp_path: Path, name: str, most: int) -> None:
    model, source, out = fitted(), folder_of(tmp_path, 4000), tmp_path / name
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        with pytest.raises(WorkFailed, match=r"cannot write .*; .* scored rows are kept in .*, and --resume goes on"):
            score_files(model, source, out, part_rows=PART)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    kept = sorted((tmp_path / f"{name}.parts").glob("part-*"))
    assert 0 < len(kept) <= 80
    assert all(pq.read_metadata(path).num_rows == PART for path in kept if path.suffix == ".parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows", f"{name}.parts"]
    assert score_files(model, source, out, part_rows=PART, resume=True).rows == 4000
    found = pd.read_parquet(out) if out.suffix == ".parquet" else pd.read_csv(out)
    pd.testing.assert_frame_equal(found, in_memory(model, numbers(4000, seed=1)), check_exact=True)


def test_a_resumed_run_writes_the_bytes_of_one_that_was_not_interrupted(tmp_path: Path) -> None:
    source, out = interrupted(tmp_path)
    score_files(fitted(), source, out, part_rows=PART, resume=True)
    score_files(fitted(), source, tmp_path / "whole.parquet", part_rows=PART)
    assert out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def interrupted(tmp_path: Path) -> tuple[Path, Path]:
    """A source, and the place of the scores of a run that stopped at its third file."""
    source, out = folder_of(tmp_path), tmp_path / "s.parquet"
    damaged = source / "2.parquet"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:200] + b"\xff" * 2000 + whole[2200:])
    with pytest.raises(ValueError, match="--resume goes on"):
        score_files(fitted(), source, out, part_rows=PART)
    damaged.write_bytes(whole)
    return source, out


def test_an_interrupted_run_is_not_thrown_away_by_mistake(tmp_path: Path) -> None:
    source, out = interrupted(tmp_path)
    with pytest.raises(FileExistsError, match=r"s\.parquet\.parts holds 500 rows that were scored before; resume"):
        score_files(fitted(), source, out, part_rows=PART)
    assert score_files(fitted(), source, out, part_rows=PART * 2).rows == 1000


def test_another_job_and_a_changed_file_cannot_be_resumed(tmp_path: Path) -> None:
    source, out = interrupted(tmp_path)
    with pytest.raises(ValueError, match=r"cannot resume: .* is of another run \(model differs\)"):
        score_files(fitted().at(alpha=0.2), source, out, part_rows=PART, resume=True)
    os.utime(source / "1.parquet", ns=(1, 1))
    with pytest.raises(ValueError, match=r"cannot resume: .*1\.parquet has changed since its rows were scored"):
        score_files(fitted(), source, out, part_rows=PART, resume=True)
    (source / "0.parquet").unlink()
    with pytest.raises(ValueError, match=r"cannot resume: .*0\.parquet is not at its place"):
        score_files(fitted(), source, out, part_rows=PART, resume=True)


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("name", ["part-00000.parquet", "part-train.parquet"])
def test_parts_of_others_are_never_removed(tmp_path: Path, name: str, resume: bool) -> None:
    source, out = folder_of(tmp_path), tmp_path / "shards"
    out.mkdir()
    (out / name).write_bytes((source / "0.parquet").read_bytes())
    with pytest.raises(FileExistsError, match=f"shards: it holds {name}"):
        score_files(fitted(), source, out, resume=resume)
    assert [each.name for each in out.iterdir()] == [name]
    assert (out / name).read_bytes() == (source / "0.parquet").read_bytes()


def test_a_finished_folder_takes_no_parts_of_others(tmp_path: Path) -> None:
    source, out = folder_of(tmp_path), tmp_path / "scores"
    score_files(fitted(), source, out, part_rows=PART)
    (out / "part-99999.parquet").write_bytes(b"mine")
    with pytest.raises(FileExistsError, match=r"it holds part-99999\.parquet"):
        score_files(fitted(), source, out, part_rows=PART, resume=True)
    assert (out / "part-99999.parquet").read_bytes() == b"mine"


def test_a_folder_that_was_there_stays_if_a_run_fails(tmp_path: Path) -> None:
    source = tmp_path / "bad.csv"
    source.write_text("u,v\nx,1\n")
    (tmp_path / "mine").mkdir()
    for name in ("mine", "new"):
        with pytest.raises(ValueError, match="x"):
            score_files(fitted(), source, tmp_path / name)
    assert (tmp_path / "mine").is_dir()
    assert not any((tmp_path / "mine").iterdir())
    assert not (tmp_path / "new").exists()


def test_a_file_of_a_list_is_not_written_over(tmp_path: Path) -> None:
    file = folder_of(tmp_path) / "0.parquet"
    before = file.read_bytes()
    with pytest.raises(ValueError, match="it is read as well; name another place"):
        score_files(fitted(), [file], file)
    for given in ([file], file):
        with pytest.raises(ValueError, match=r"0\.parquet lies in it and is read"):
            score_files(fitted(), given, file.parent)
    assert file.read_bytes() == before


def test_a_folder_of_other_files_and_one_in_use_are_left_alone(tmp_path: Path) -> None:
    source, out = folder_of(tmp_path), tmp_path / "scores"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"scores: it holds notes\.txt"):
        score_files(fitted(), source, out)
    (out / "notes.txt").unlink()
    hold = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print(1, flush=True); sys.stdin.read()"
    held = subprocess.Popen(
        [sys.executable, "-c", hold, str(out / JOURNAL)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with held as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        with pytest.raises(WorkFailed, match="another process is writing"):
            score_files(fitted(), source, out)
    assert score_files(fitted(), source, out).rows == 1000
