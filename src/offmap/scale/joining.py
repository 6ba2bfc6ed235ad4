"""Writes scores as Parquet, CSV or JSON lines: each part to a file of its own, and all of them to one file."""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from offmap.cells import inert
from offmap.files import replacing
from offmap.outputs import json_lines

Use = Literal["result", "copy"]
# Columns that compression does not make smaller.
_DENSE = ("row", "novelty", "p_value", "novel")


def write_part(table: pa.Table, path: Path, suffix: str, use: Use = "result") -> None:
    """Writes scores as ``suffix`` says; CSV without the line of names.

    Args:
        table: The scores.
        path: The file.
        suffix: The format: ".parquet", ".csv" or ".jsonl".
        use: "copy" if the file is kept until all scores are in one file; what only a reader needs is left out then.
    """
    if suffix == ".parquet":
        with _parquet_writer(path, table.schema, use) as writer:
            writer.write_table(table, row_group_size=max(len(table), 1))
        return
    if suffix == ".csv":
        # Integers with gaps must not become floating-point numbers, which round them.
        whole = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype()}
        inert(table.to_pandas(types_mapper=whole.get)).to_csv(path, index=False, header=False)
        return
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json_lines(table.to_pandas(integer_object_nulls=True)))


class Joined(ABC):
    """The file of all parts, which grows part by part, so that nothing is left to be done after the last one."""

    @abstractmethod
    def add(self, part: Path, table: pa.Table | None = None) -> None:
        """Appends a part.

        Args:
            part: Its own file.
            table: Its scores, if they are in memory still.
        """

    @abstractmethod
    def close(self) -> None:
        """Completes the file."""


@contextmanager
def joined(out: Path, schema: pa.Schema) -> Iterator[Joined]:
    """Yields a file to which parts are added; it replaces ``out`` when the block ends without an error."""
    with replacing(out) as fresh:
        file = _JoinedParquet(fresh, schema) if out.suffix == ".parquet" else _JoinedText(fresh, schema)
        try:
            yield file
        except BaseException:
            # It is removed; that it cannot be completed, as on a full disk, must not hide why.
            with suppress(OSError):
                file.close()
            raise
        file.close()


@final
class _JoinedParquet(Joined):
    """One row group per part."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.writer, self.schema = _parquet_writer(path, schema, "result"), schema

    def add(self, part: Path, table: pa.Table | None = None) -> None:
        rows = pq.read_table(part, schema=self.schema, use_threads=False) if table is None else table
        self.writer.write_table(rows, row_group_size=max(len(rows), 1))

    def close(self) -> None:
        self.writer.close()


@final
class _JoinedText(Joined):
    """The lines of all parts."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.stream = path.open("wb")
        if path.suffix == ".csv":
            self.stream.write(schema.empty_table().to_pandas().to_csv(index=False).encode())

    def add(self, part: Path, table: pa.Table | None = None) -> None:
        with part.open("rb") as lines:
            shutil.copyfileobj(lines, self.stream, 1 << 20)

    def close(self) -> None:
        self.stream.close()


def _parquet_writer(path: Path, schema: pa.Schema, use: Use) -> pq.ParquetWriter:
    """A writer that looks for repeated values, and compresses, only where there is something to find.

    Row numbers and integer ids are written as differences, which are small. P-values are few: one per held-out row at
    most. The novelty has neither, and looking for it would cost most of the time.
    """
    whole = {each.name: "DELTA_BINARY_PACKED" for each in schema if each.type in (pa.int32(), pa.int64())}
    texts = [each.name for each in schema if not pa.types.is_primitive(each.type)]
    repeated = [*texts, *({"p_value"} & set(schema.names))] if use == "result" else texts
    packed = {name: "none" if use == "copy" or name in _DENSE else "snappy" for name in schema.names}
    return pq.ParquetWriter(
        path,
        schema,
        use_dictionary=repeated or False,
        column_encoding=whole or None,
        compression=packed,
        write_statistics=use == "result",
    )
