"""Writes scores part by part into a folder, and joins the parts to one file if one is wanted."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from offmap.cells import inert
from offmap.errors import WorkFailed, reason_of
from offmap.files import locked, replacing
from offmap.outputs import SCORE_SUFFIXES, json_line
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

    @contextmanager
    def opened(self, resume: bool) -> Iterator[None]:
        """Makes the folder, or takes up what an interrupted run has left in it; no other process writes meanwhile."""
        self.folder.mkdir(exist_ok=True)
        if self._others():
            raise FileExistsError(f"cannot write to {self.folder}: it holds {self._others()[0]}; name another folder")
        with locked(self.journal.path) as free:
            if not free:
                raise WorkFailed(f"another process is writing to {self.folder}; wait until it ends")
            self._begin(resume)
            try:
                yield
            finally:
                if not self.journal.done and not self._parts():
                    shutil.rmtree(self.folder, ignore_errors=True)

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
        try:
            with replacing(self._part(len(self.journal.done))) as fresh:
                write_part(table, fresh, self.suffix)
            self.journal.add(part, len(table), pc.sum(table["novel"]).as_py() or 0)
        except OSError as error:
            raise WorkFailed(f"cannot write {self.folder}: {reason_of(error)}; {self.how_to_go_on()}") from error

    def finish(self) -> None:
        """Joins the parts, if one file is wanted."""
        if not self.is_file:
            if not self.journal.done:
                write_part(self.schema.empty_table(), self._part(0), self.suffix)
            return
        try:
            with replacing(self.out) as fresh:
                _join([self._part(number) for number in range(len(self.journal.done))], fresh, self.schema)
        except OSError as error:
            raise WorkFailed(f"cannot write {self.out}: {reason_of(error)}; {self.how_to_go_on()}") from error
        shutil.rmtree(self.folder)

    def how_to_go_on(self) -> str:
        """What is kept of a run that stopped."""
        rows = sum(done.scored for done in self.journal.done)
        return f"{rows:,} scored rows are kept in {self.folder}, and --resume goes on from there"

    def _part(self, number: int) -> Path:
        return self.folder / f"part-{number:05d}{self.suffix}"

    def _parts(self) -> list[Path]:
        return sorted(path for path in self.folder.glob(f"part-*{self.suffix}"))

    def _others(self) -> list[str]:
        """What the folder holds besides parts."""
        return [name for name in sorted(os.listdir(self.folder)) if not name.startswith((".part-", "part-", JOURNAL))]


def write_part(table: pa.Table, path: Path, suffix: str) -> None:
    """Writes scores as ``suffix`` says; CSV without the line of names."""
    if suffix == ".parquet":
        with _parquet_writer(path, table.schema) as writer:
            writer.write_table(table, row_group_size=max(len(table), 1))
        return
    if suffix == ".csv":
        # Integers with gaps must not become floating-point numbers, which round them.
        whole = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype()}
        inert(table.to_pandas(types_mapper=whole.get)).to_csv(path, index=False, header=False)
        return
    frame = table.to_pandas(integer_object_nulls=True)
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json_line(table.column_names, row) for row in frame.itertuples(index=False, name=None))


def _join(parts: list[Path], out: Path, schema: pa.Schema) -> None:
    if out.suffix == ".parquet":
        with _parquet_writer(out, schema) as writer:
            for path in parts:
                table = pq.read_table(path, schema=schema, use_threads=False)
                writer.write_table(table, row_group_size=max(len(table), 1))
        return
    with out.open("wb") as stream:
        if out.suffix == ".csv":
            stream.write(schema.empty_table().to_pandas().to_csv(index=False).encode())
        for path in parts:
            with path.open("rb") as part:
                shutil.copyfileobj(part, stream, 1 << 20)


def _parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer that looks for repeated values among texts alone: scores have none, and looking costs most of the time.

    Row numbers and integer ids are written as differences, which are small.
    """
    whole = {each.name: "DELTA_BINARY_PACKED" for each in schema if each.type in (pa.int32(), pa.int64())}
    repeated = [each.name for each in schema if not pa.types.is_primitive(each.type)]
    return pq.ParquetWriter(path, schema, use_dictionary=repeated or False, column_encoding=whole or None)
