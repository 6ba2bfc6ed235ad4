"""Writes scores part by part into a folder, and into one file if one is wanted."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from offmap.errors import WorkFailed, reason_of
from offmap.files import locked, replacing
from offmap.outputs import SCORE_SUFFIXES
from offmap.scale.joining import Joined, joined, write_part
from offmap.scale.journal import Journal
from offmap.scale.parts import Part

JOURNAL = "_offmap.jsonl"


class Results:
    """The folder of written parts.

    Args:
        out: What the user named: a .parquet, .csv or .jsonl file, or a folder.
        schema: Name and type of each column.
        job: What makes a job the same.
    """

    def __init__(self, out: Path, schema: pa.Schema, job: dict[str, Any]) -> None:
        self.out, self.schema = out, schema
        self.suffix = out.suffix if out.suffix in SCORE_SUFFIXES else ".parquet"
        self.is_file = out.suffix in SCORE_SUFFIXES
        self.folder = out.with_name(f"{out.name}.parts") if self.is_file else out
        self.journal = Journal(self.folder / JOURNAL, job)
        self.joined: Joined | None = None

    @contextmanager
    def opened(self, resume: bool) -> Iterator[None]:
        """Makes the folder, or takes up what an interrupted run has left in it; no other process writes meanwhile.

        If one file is wanted, it is there when the block ends without an error.
        """
        made = not self.folder.exists()
        self.folder.mkdir(exist_ok=True)
        if others := self._others():
            raise FileExistsError(f"cannot write to {self.folder}: it holds {others[0]}; name another folder")
        with locked(self.journal.path) as free:
            if not free:
                raise WorkFailed(f"another process is writing to {self.folder}; wait until it ends")
            self._begin(resume)
            try:
                with ExitStack() as files:
                    self._join(files)
                    yield
                    self._finish(files)
            finally:
                if not self.journal.done and not self._parts():
                    self._leave(made)

    def _leave(self, made: bool) -> None:
        """Removes what a run without results has made; a folder that was there before stays."""
        if made:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            self.journal.path.unlink(missing_ok=True)

    def _begin(self, resume: bool) -> None:
        job, done = self.journal.left()
        if done and resume and job != self.journal.job:
            changed = ", ".join(name for name in self.journal.job if job.get(name) != self.journal.job[name])
            raise ValueError(f"cannot resume: {self.folder} is of another run ({changed} differs); remove it first")
        if done and not resume and (job == self.journal.job or not self.is_file):
            raise FileExistsError(
                f"{self.folder} holds {sum(each.scored for each in done):,} rows that were scored before; resume "
                "(--resume), or remove the folder to start anew"
            )
        if done and resume:
            self.journal.resume()
            return
        for path in self._parts():
            path.unlink()
        self.journal.start()

    def write(self, part: Part, table: pa.Table) -> None:
        """Writes a part and notes that it is done.

        Raises:
            WorkFailed: The disk is full, or the like; the message says how to go on.
        """
        path = self._part(len(self.journal.done))
        with self._writing(self.folder):
            with replacing(path) as fresh:
                write_part(table, fresh, self.suffix, "copy" if self.is_file else "result")
            novel = pc.sum(table["novel"]).as_py() or 0
            self.journal.add(part, len(table), novel, part.rows - len(table) + _of_new_entities(table))
        if self.joined is not None:
            with self._writing(self.out):
                self.joined.add(path, table)

    def _join(self, files: ExitStack) -> None:
        """Begins the one file, if it is wanted, with the parts that are done."""
        if self.is_file:
            with self._writing(self.out):
                self.joined = files.enter_context(joined(self.out, self.schema))
                for number in range(len(self.journal.done)):
                    self.joined.add(self._part(number))

    def _finish(self, files: ExitStack) -> None:
        if self.is_file:
            with self._writing(self.out):
                files.close()
            shutil.rmtree(self.folder)
        elif not self.journal.done:
            write_part(self.schema.empty_table(), self._part(0), self.suffix)

    @contextmanager
    def _writing(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise WorkFailed(f"cannot write {path}: {reason_of(error)}; {self.how_to_go_on()}") from error

    def how_to_go_on(self) -> str:
        """What is kept of a run that stopped."""
        rows = sum(done.scored for done in self.journal.done)
        return f"{rows:,} scored rows are kept in {self.folder}, and --resume goes on from there"

    def _part(self, number: int) -> Path:
        return self.folder / f"part-{number:05d}{self.suffix}"

    def _parts(self) -> list[Path]:
        return sorted(path for path in self.folder.glob(f"part-*{self.suffix}"))

    def _others(self) -> list[str]:
        """What the folder holds besides the parts that its journal tells of; parts of others are theirs."""
        own = {JOURNAL}
        if self.journal.path.exists():
            # A part is on disk before the journal says so.
            own |= {self._part(number).name for number in range(len(self.journal.left()[1]) + 1)}
        return [name for name in sorted(os.listdir(self.folder)) if name not in own and not name.startswith(".part-")]


def _of_new_entities(table: pa.Table) -> int:
    """How many rows are of entities that the model does not know: their novelty is infinite."""
    if "entity" not in table.column_names:
        return 0
    return pc.sum(pc.is_inf(table["novelty"])).as_py() or 0
