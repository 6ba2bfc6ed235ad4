"""Tables that a client uploads: CSV, TSV, JSON lines or Parquet, kept in a temporary file while they are read."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from fastapi import Request
from starlette.datastructures import UploadFile

from offmap.data import Data, open_data
from offmap.data.roles import Roles
from offmap.errors import reason_of
from offmap.service.problems import Problem
from offmap.service.rows import require_few
from offmap.service.settings import Limits
from offmap.workflow import Estimator, scoring_roles

TYPES = {
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "application/x-ndjson": ".jsonl",
    "application/jsonl": ".jsonl",
    "application/vnd.apache.parquet": ".parquet",
    "application/x-parquet": ".parquet",
}
MULTIPART = "multipart/form-data"
_NAME = "upload"


def media_type(request: Request) -> str:
    """The type of a body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


@asynccontextmanager
async def spooled(request: Request) -> AsyncIterator[Path]:
    """Yields a file with the uploaded table; its name is ours, whatever the client calls it."""
    with tempfile.TemporaryDirectory(prefix="offmap-upload-") as folder:
        kind = media_type(request)
        if kind == MULTIPART:
            yield await _from_form(request, Path(folder))
            return
        path = Path(folder) / f"{_NAME}{TYPES[kind]}"
        with path.open("wb") as stream:
            async for chunk in request.stream():
                stream.write(chunk)
        yield path


async def _from_form(request: Request, folder: Path) -> Path:
    async with request.form(max_files=1, max_fields=10) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise Problem(422, "the form must have a field 'file' that holds a file")
        suffix = Path(file.filename or "").suffix.lower()
        if suffix not in TYPES.values():
            raise Problem(415, f"the file must be one of {', '.join(sorted(set(TYPES.values())))}")
        path = folder / f"{_NAME}{suffix}"
        with path.open("wb") as stream:
            await asyncio.to_thread(shutil.copyfileobj, file.file, stream)
        return path


def read_upload(path: Path, model: Estimator, stated: Roles, limits: Limits) -> Data:
    """Reads an uploaded table for a model, which remembers what its columns are for."""
    if path.stat().st_size == 0:
        raise Problem(422, "the body is empty; send a table")
    try:
        if path.suffix == ".parquet":
            _require_small(path, limits)
        roles, optional = scoring_roles(model, stated)
        data = open_data(str(path), roles=roles, optional=optional)
    except ValueError as error:
        raise Problem(422, reason_of(error).replace(str(path), "the upload")) from None
    require_few(len(data), limits.rows)
    return data


def _require_small(path: Path, limits: Limits) -> None:
    """Refuses a Parquet file that would grow beyond the limits, from what its footer says and from its dictionaries."""
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise Problem(422, f"the upload cannot be read as a Parquet file: {reason_of(error)}") from None
    about = file.metadata
    require_few(about.num_rows, limits.rows)
    if about.num_rows * about.num_columns > limits.cells:
        raise Problem(413, f"the table has more than {limits.cells:,} cells; send it in several parts")
    stated = sum(about.row_group(place).total_byte_size for place in range(about.num_row_groups))
    if stated > 4 * limits.body_bytes or _text_bytes(path, about, limits) > 4 * limits.body_bytes:
        raise Problem(413, f"the table grows beyond {4 * limits.body_bytes:,} bytes when it is read; send fewer rows")


def _text_bytes(path: Path, about: Any, limits: Limits) -> int:
    """Bytes of all texts when each row has its own; a dictionary of one long text may stand for a million of them."""
    schema = about.schema.to_arrow_schema()
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    texts = [field.name for field in schema if any(kind(field.type) for kind in kinds)]
    size = 0
    for batch in pq.ParquetFile(path, read_dictionary=texts).iter_batches(batch_size=1024, columns=texts):
        for column in batch.columns:
            lengths = pc.binary_length(column.dictionary) if pa.types.is_dictionary(column.type) else None
            each = pc.binary_length(column) if lengths is None else lengths.take(column.indices)
            size += pc.sum(each).as_py() or 0
        if size > 4 * limits.body_bytes:
            break
    return size
