"""Scores data sets of Ray Data."""

from typing import Any

import pyarrow as pa

from offmap.data.roles import Roles
from offmap.parameters import Count, require
from offmap.scale.parts import BATCH_ROWS
from offmap.scale.ray_cluster import ray_module
from offmap.scale.reading import Reading, reading_for
from offmap.scale.scoring import score_table
from offmap.scale.shipped import ShippedModel
from offmap.workflow import Estimator, NewEntities


class _BatchScorer:
    """What an actor of Ray Data does: loads the model once and scores batches."""

    def __init__(self, shipped: ShippedModel, reading: Reading) -> None:
        self.model, self.reading = shipped.load(), reading

    def __call__(self, batch: pa.Table) -> pa.Table:
        return score_table(self.model, batch, self.reading).drop_columns("row")


def score_dataset(
    model: Estimator,
    dataset: Any,
    *,
    roles: Roles | None = None,
    new_entities: NewEntities = "flag",
    workers: int | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Any:
    """Scores a data set of Ray Data; actors load the model once each, and texts are encoded there too.

    Ray does not keep the order of rows. Carry a column that names them with ``Roles(id=("name",))``: sort by it, and
    give it to Ray's ``CheckpointConfig(id_column="name")`` so that a run that was killed continues.

    Args:
        model: A fitted model.
        dataset: A ``ray.data.Dataset`` with the columns that the model was fitted on.
        roles: What the columns are for; by default as in training. Columns in ``id`` and ``keep`` are carried through.
        new_entities: What to do with rows of entities that the model does not know: "flag", "skip" or "error".
        workers: Actors; by default between one and all CPUs of the cluster but one, which reads and writes. Ray's
            checkpoint takes another one.
        batch_rows: Rows that an actor scores at once.

    Returns:
        A lazy ``ray.data.Dataset`` of the columns that are carried through and the scores.
    """
    require("batch_rows", batch_rows, Count)
    ray = ray_module()
    found = dataset.schema()
    columns = pa.schema(list(zip(found.names, found.types, strict=True)))
    reading = reading_for(model, columns, "the data set", roles or Roles(), new_entities)
    most = max(int(ray.cluster_resources().get("CPU", 1)) - 1, 1)
    return dataset.map_batches(
        _BatchScorer,
        fn_constructor_args=(ShippedModel.of(model), reading),
        batch_size=batch_rows,
        batch_format="pyarrow",
        concurrency=workers or (1, most),
    )
