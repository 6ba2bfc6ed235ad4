"""A job: which rows a model is to score, and how they are read."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from offmap.data.roles import Roles
from offmap.parameters import Count, require
from offmap.scale.parts import PART_ROWS, Part, Position, parts_of
from offmap.scale.reading import Reading, reading_of
from offmap.scale.shipped import ShippedModel
from offmap.scale.sources import Source, open_source
from offmap.workflow import Estimator, NewEntities, load_model

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
# Encoding a text costs a thousand times as much as reading it, so that fewer of them make a part.
_TEXT_PART_ROWS = 1 << 10


@dataclass(frozen=True, kw_only=True)
class Job:
    """Rows to score with a model.

    Args:
        model: A fitted model.
        source: The files.
        reading: How their rows are read.
        part_rows: Rows of a part, at most.
        trusted: What the file of the model may use beyond itself.
    """

    model: Estimator
    source: Source
    reading: Reading
    part_rows: int
    trusted: tuple[str, ...] = ()

    def parts(self, start: Position) -> Iterator[Part]:
        """The parts from ``start`` on."""
        split = self.reading.roles.text is not None
        return parts_of(self.source, start, self.part_rows, split_groups=split)

    @cached_property
    def shipped(self) -> ShippedModel:
        """The model as a file holds it."""
        return ShippedModel.of(self.model, self.trusted)

    def identity(self) -> dict[str, Any]:
        """What makes two jobs the same, as plain values."""
        columns = [f"{each.name}: {each.type}" for each in self.reading.schema]
        return {
            "model": hashlib.sha256(self.shipped.content).hexdigest(),
            "source": self.source.name,
            "columns": [*self.reading.columns, *columns],
            "new_entities": self.reading.new_entities,
            "part_rows": self.part_rows,
        }


def plan_job(
    model: Estimator | str | os.PathLike[str],
    source: Paths,
    roles: Roles | None = None,
    new_entities: NewEntities = "flag",
    part_rows: int | None = None,
    trusted: Sequence[str] = (),
) -> Job:
    """Opens the model and the source, and checks that they fit before any row is scored."""
    if part_rows is not None:
        require("part_rows", part_rows, Count)
    loaded = load_model(model, trusted) if isinstance(model, str | os.PathLike) else model
    opened = open_source(source)
    reading = reading_of(loaded, opened, roles or Roles(), new_entities)
    usual = PART_ROWS if reading.roles.text is None else _TEXT_PART_ROWS
    return Job(model=loaded, source=opened, reading=reading, part_rows=part_rows or usual, trusted=tuple(trusted))
