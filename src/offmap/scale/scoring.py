"""Scores the rows of a part: the one function that every engine runs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa

from offmap.collaborative.base import EntityDetector
from offmap.data.rows import Data
from offmap.data.tables import rows_of
from offmap.errors import reason_of
from offmap.scale.parts import BATCH_ROWS, Part
from offmap.scale.reading import Reading
from offmap.workflow import Estimator, score_rows


def score_part(model: Estimator, part: Part, reading: Reading) -> pa.Table:
    """Scores the rows of a part, some at a time; the column ``row`` counts the rows of the whole source.

    Raises:
        ValueError: A row cannot be read; the message names its file.
    """
    scored, done = [reading.schema.empty_table()], 0
    where = str(part.file.path)
    for batch in part.batches(reading.columns, BATCH_ROWS):
        scored.append(score_table(model, batch, reading, where, (part.at.row + done, part.at.before + done)))
        done += len(batch)
    return pa.concat_tables(scored).combine_chunks()


def score_table(
    model: Estimator, batch: pa.Table, reading: Reading, where: str = "the data set", first: tuple[int, int] = (0, 0)
) -> pa.Table:
    """Scores the rows of a table and carries the columns through that are kept.

    Args:
        model: A fitted model.
        batch: The rows.
        reading: How they are read.
        where: What the table is called in messages.
        first: Number of the first row in its file, for messages, and in the source.
    """
    if not len(batch):
        return reading.schema.empty_table()
    try:
        data = _rows(model, batch, reading, where, first[0])
        frame = score_rows(model, data, new_entities=reading.new_entities)
    except ValueError as error:
        raise error if where in str(error) else ValueError(f"{where}: {reason_of(error)}") from error
    places = frame.pop("row").to_numpy()
    kept = batch.select(list(dict.fromkeys(reading.carried.values())))
    kept = kept if len(places) == len(batch) else kept.take(places)
    scores = pa.Table.from_pandas(frame, preserve_index=False)
    columns = {"row": places + first[1], **{written: kept[name] for written, name in reading.carried.items()}}
    columns |= {name: scores[name] for name in reading.schema.names if name not in columns}
    return _cast(columns, reading.schema, where)


def _rows(model: Estimator, batch: pa.Table, reading: Reading, where: str, first: int) -> Data:
    roles = reading.roles
    read = {*roles.only, roles.text, roles.entity}
    frame = batch.select([name for name in batch.column_names if name in read]).to_pandas()
    frame.index = pd.RangeIndex(first, first + len(frame))
    data = rows_of(frame, roles, where, ("only", "kind"), reading.types)
    data = replace(data, identity=None)
    if isinstance(model, EntityDetector) and roles.entity and model.entity_ids_.dtype.kind == "U":
        # Some ids of a batch may look like numbers where those of the whole table do not.
        data = replace(data, y=frame[roles.entity].astype(str).to_numpy(dtype=str))
    return data


def _cast(columns: dict[str, pa.ChunkedArray | np.ndarray], schema: pa.Schema, where: str) -> pa.Table:
    """The columns in the types of the first file."""
    try:
        return pa.table(columns).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"{where} has a column of another type than the first file: {reason_of(error)}") from error
