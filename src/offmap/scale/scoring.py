"""Scores the rows of a part: the one function that every engine runs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa

from offmap.collaborative.base import EntityDetector
from offmap.data.rows import Data
from offmap.data.tables import require_integers, rows_of
from offmap.errors import reason_of
from offmap.estimator import OpenWorldEstimator, encoder_of
from offmap.numeric_rows import require_finite
from offmap.scale.parts import Part
from offmap.scale.reading import Reading
from offmap.workflow import Estimator
from offmap.workflow.scoring import assess_places


def score_part(model: Estimator, part: Part, reading: Reading) -> pa.Table:
    """Scores the rows of a part, some at a time; the column ``row`` counts the rows of the whole source.

    Raises:
        ValueError: A row cannot be read; the message names its file.
    """
    scored, done = [reading.schema.empty_table()], 0
    where = str(part.file.path)
    for batch in part.batches(reading.columns):
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
        _require_finite(model, data)
        verdict, places = assess_places(model, data, reading.new_entities)
    except ValueError as error:
        raise error if where in str(error) else ValueError(f"{where}: {reason_of(error)}") from error
    kept = batch.select(list(dict.fromkeys(reading.carried.values())))
    kept = kept if len(places) == len(batch) else kept.take(places)
    carried = {
        written: _typed(kept[name], reading.schema.field(written).type) for written, name in reading.carried.items()
    }
    columns = {"row": places + first[1], **carried}
    said = [name for name in reading.schema.names if name not in columns]
    # As pandas has it, a p-value that is not a number is missing.
    columns |= {name: pa.array(getattr(verdict, name), from_pandas=True) for name in said}
    return _cast(columns, reading.schema, where)


def _rows(model: Estimator, batch: pa.Table, reading: Reading, where: str, first: int) -> Data:
    roles = reading.roles
    read = {*roles.only, roles.text, roles.entity}
    table = batch.select([name for name in batch.column_names if name in read])
    matrix = _matrix(model, table)
    frame = table.to_pandas() if matrix is None else pd.DataFrame(matrix, columns=table.column_names, copy=False)
    frame.index = pd.RangeIndex(first, first + len(frame))
    if matrix is not None and matrix.dtype == np.float64 and roles.entity is None:
        # Numbers have no types to find out, and their columns were checked when the reading was planned.
        return Data(matrix, name=where, feature_names=tuple(table.column_names), frame=frame)
    data = rows_of(frame, roles, where, ("only", "kind"), reading.types)
    by_integers = isinstance(model, EntityDetector) and model.entity_ids_.dtype.kind == "i"
    if by_integers and data.y is not None and data.y.dtype.kind == "U":
        require_integers(frame[roles.entity], where)
    return replace(data, identity=None)


def _require_finite(model: Estimator, data: Data) -> None:
    """A model that knows no names of columns gets an array, which does not tell the numbers of its rows in the file."""
    named = encoder_of(model) is not None or hasattr(model, "feature_names_in_")
    if isinstance(model, OpenWorldEstimator) and not named and data.frame is not None:
        require_finite(data.X, data.feature_names, data.frame.index)


def _matrix(model: Estimator, table: pa.Table) -> np.ndarray | None:
    """Numbers of one type, laid row by row, where the model reads them so: one copy, and none after it.

    Models of other libraries, and encoders, get them column by column as from any file: they may round differently.
    """
    kinds = set(table.schema.types)
    floating = all(map(pa.types.is_floating, kinds))
    whole = all(map(pa.types.is_integer, kinds)) and not any(column.null_count for column in table.columns)
    own = isinstance(model, OpenWorldEstimator) and encoder_of(model) is None
    if own and len(kinds) == 1 and (floating or whole):
        return np.column_stack([column.to_numpy() for column in table.columns])
    return None


def _typed(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column without values in the type of the other files: some of these types cannot be cast to one another."""
    return pa.chunked_array([pa.nulls(len(column), kind)]) if column.null_count == len(column) else column


def _cast(columns: dict[str, pa.ChunkedArray | np.ndarray], schema: pa.Schema, where: str) -> pa.Table:
    """The columns in the types that are written."""
    try:
        return pa.table(columns).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        remedy = "write the columns that are kept with one type everywhere"
        raise ValueError(f"{where} has a value that its column cannot hold: {reason_of(error)}; {remedy}") from error
