"""Which columns of a source a model reads, which are carried through, and the table that comes out."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from offmap.base import OpenSetClassifier
from offmap.collaborative.base import EntityDetector
from offmap.data import TableEncoder
from offmap.data.arrow_types import common_type, number_types
from offmap.data.cell_types import CellTypes, is_text
from offmap.data.decoding import decoding
from offmap.data.roles import Roles, names_beside
from offmap.data.table.problems import raise_problems, repeated_columns
from offmap.data.table_batches import cells_in_batches
from offmap.data.tables import refuse_bytes
from offmap.estimator import encoder_of
from offmap.scale.parts import BATCH_ROWS, columns_of
from offmap.scale.sources import Source, SourceFile
from offmap.workflow import Estimator, NewEntities
from offmap.workflow.scoring import scoring_roles


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How rows are read for a model, and what is written of them.

    Args:
        roles: What the columns that are read are for.
        columns: The columns to read.
        carried: Columns that are written beside the scores, by the names that they get.
        schema: Name and type of each column that is written.
        new_entities: What to do with rows of entities that the model does not know.
        types: What the cells of some columns of texts have in common.
    """

    roles: Roles
    columns: tuple[str, ...]
    carried: dict[str, str]
    schema: pa.Schema
    new_entities: NewEntities
    types: dict[str, CellTypes] = field(default_factory=dict)


def reading_for(
    model: Estimator,
    columns: pa.Schema,
    where: str,
    roles: Roles,
    new_entities: NewEntities,
    stated: Collection[str] = (),
) -> Reading:
    """Plans how to read a table for a fitted model.

    Args:
        model: A fitted model; the roles that it remembers count where ``roles`` states none.
        columns: Name and type of each column of the table.
        where: What the table is called in messages.
        roles: What the columns are for.
        new_entities: What to do with rows of entities that the model does not know.
        stated: Columns that folders state; they are features only if the model was fitted on them.
    """
    if new_entities == "add":
        raise ValueError('new_entities="add" needs all rows at once; "flag", "skip" and "error" work in batches')
    known, optional = scoring_roles(model, roles)
    raise_problems(repeated_columns(columns.names), where)
    known.require(pd.DataFrame(columns=columns.names), where, optional)
    features = _features(model, known, columns.names, stated)
    target = known.entity if isinstance(model, EntityDetector) else None
    read = [*features, *(name for name in (known.text, target) if name is not None)]
    carried = _carried(known, columns.names, score_fields(model))
    types = [pa.field(written, columns.field(name).type) for written, name in carried.items()]
    return Reading(
        roles=Roles(text=known.text, entity=target, only=() if known.text else tuple(features), kinds=known.kinds),
        columns=tuple(dict.fromkeys([*read, *carried.values()])),
        carried=carried,
        schema=pa.schema([pa.field("row", pa.int64()), *types, *score_fields(model)]),
        new_entities=new_entities,
    )


def reading_of(model: Estimator, source: Source, roles: Roles, new_entities: NewEntities) -> Reading:
    """Plans how to read files for a model, and checks that every file has the columns of the first that matter."""
    first = source.files[0]
    plan = reading_for(model, columns_of(source, first), str(first.path), roles, new_entities, first.values)
    schema = _schema_of(source, [_columns_for(plan, source, file) for file in source.files], plan)
    return replace(plan, schema=schema, types=_types_of(source, _category_columns(model, plan.roles.only)))


def score_fields(model: Estimator) -> list[pa.Field]:
    """Name and type of what a model says of each row."""
    names = [("novelty", pa.float64()), ("p_value", pa.float64()), ("novel", pa.bool_())]
    if isinstance(model, EntityDetector):
        names.insert(0, ("entity", _id_type(model.entity_ids_)))
    if isinstance(model, OpenSetClassifier):
        names += [("label", _id_type(model.classes_)), ("closest", _id_type(model.classes_))]
    return [pa.field(*pair) for pair in names if pair[0] != "p_value" or len(model.calibration_novelty_)]


def _id_type(values: NDArray[Any]) -> pa.DataType:
    return pa.string() if values.dtype.kind in "UOT" else pa.from_numpy_dtype(values.dtype)


def _features(model: Estimator, roles: Roles, names: Sequence[str], stated: Collection[str]) -> list[str]:
    """The columns that are features; an encoder of tables finds its own by name, so that others need not be read."""
    if roles.text is not None:
        return []
    encoder = encoder_of(model)
    table = isinstance(encoder, TableEncoder)
    fitted = set(encoder.columns_) if table else set(getattr(model, "feature_names_in_", ()))
    found = [name for name in roles.feature_names(names) if name in fitted or name not in stated]
    return [name for name in found if name in fitted] if table and fitted <= set(found) else found


def _carried(roles: Roles, names: Sequence[str], scores: Iterable[pa.Field]) -> dict[str, str]:
    """The columns that are kept, by the names that they get: a name that is taken gets the prefix ``input_``."""
    taken = {"row", *(each.name for each in scores)}
    kept = {name: name for name in roles.kept_names(names)}
    if roles.text is not None and roles.text not in kept:
        kept[roles.text_name(kept)] = roles.text
    return dict(zip(names_beside(kept, taken), kept.values(), strict=True))


def _columns_for(plan: Reading, source: Source, file: SourceFile) -> pa.Schema:
    """The columns of a file that are carried through; the file must have all that are read."""
    found = columns_of(source, file)
    if lacking := [name for name in plan.columns if name not in found.names]:
        quoted, first = ", ".join(map(repr, lacking)), source.files[0].path
        raise ValueError(f"{file.path} lacks the column {quoted}, which {first} has; it has {found.names}")
    return pa.schema([found.field(name) for name in dict.fromkeys(plan.carried.values())])


def _schema_of(source: Source, found: Sequence[pa.Schema], plan: Reading) -> pa.Schema:
    """What is written, with the columns that are carried through in types that hold their values in every file."""
    types = {written: [columns.field(name).type for columns in found] for written, name in plan.carried.items()}
    fitting = {written: _carried_type(source, plan.carried[written], types[written]) for written in types}
    return pa.schema([pa.field(each.name, fitting.get(each.name, each.type)) for each in plan.schema])


def _carried_type(source: Source, name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """The type that holds the values of a column of all files; its cells are looked at only where types differ."""
    if len(set(types)) == 1:
        return types[0]
    paths = [file.path for file in source.files]
    filled = [(kind, path) for kind, path in zip(types, paths, strict=True) if _has_values(path, name)]
    kinds = [kind for kind, _ in filled] or list(types[:1])
    if (common := common_type(kinds)) is not None:
        return common
    for kind in number_types(kinds):
        if all(_fits(path, name, kind) for _, path in filled):
            return kind
    (kind, path), (other, second) = next(
        pair for pair in combinations(filled, 2) if common_type([pair[0][0], pair[1][0]]) is None
    )
    raise ValueError(
        f"the column {name!r} holds {kind} in {path} and {other} in {second}; write it with one type in all files, or "
        "do not keep it"
    )


def _has_values(path: Path, name: str) -> bool:
    return any(column.null_count < len(column) for (column,) in _batches(path, [name]))


def _fits(path: Path, name: str, kind: pa.DataType) -> bool:
    """Whether every number of a column stays the same in another type."""
    try:
        for (column,) in _batches(path, [name]):
            column.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _category_columns(model: Estimator, features: Sequence[str]) -> list[str]:
    encoder = encoder_of(model)
    known = encoder.columns_ if isinstance(encoder, TableEncoder) else {}
    return [name for name in features if known.get(name, {}).get("kind") == "category"]


def _types_of(source: Source, columns: Sequence[str]) -> dict[str, CellTypes]:
    """What all cells of some columns of texts have in common.

    Whether "1.50" is the text "1.50" or the number 1.5 depends on every cell of its column, and a category is known by
    its text. So these columns are read once before any row is scored.
    """
    found: dict[str, CellTypes] = {}
    for file in source.files if columns else ():
        inside = [name for name in columns if name not in file.values]
        for cells in _cells(source, file.path, inside):
            refuse_bytes(cells, str(file.path), inside)
            texts = [name for name in inside if is_text(cells[name].dtype)]
            seen = {name: CellTypes.of(cells[name]) for name in texts}
            found |= {name: found[name].joined(types) if name in found else types for name, types in seen.items()}
    return found


def _cells(source: Source, path: Path, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Some columns of a file, in batches."""
    if source.form == "separated":
        yield from cells_in_batches(path, BATCH_ROWS, columns)
        return
    for batch in _batches(path, columns):
        yield batch.to_pandas()


def _batches(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of a Parquet file, in batches."""
    with decoding(path, "a table"), pq.ParquetFile(path) as file:
        yield from file.iter_batches(BATCH_ROWS, columns=list(columns))
