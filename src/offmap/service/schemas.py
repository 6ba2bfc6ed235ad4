"""What requests and answers look like."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

Label = StrictInt | StrictStr
Status = Literal["open", "skipped", "named", "learnt", "discarded"]


class Refusal(BaseModel):
    """Why a request was not answered."""

    error: str


class Live(BaseModel):
    """Whether the process runs."""

    live: bool


class Ready(BaseModel):
    """Whether every model and world is loaded."""

    ready: bool


class Server(BaseModel):
    """The server."""

    name: str
    version: str
    extensions: list[str]


class TensorMetadata(BaseModel):
    """Name, type and shape of a tensor; -1 is any length."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(BaseModel):
    """What a model reads and writes."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class ModelReady(BaseModel):
    """Whether a version of a model can be used."""

    name: str
    version: str
    ready: bool


class ModelVersions(BaseModel):
    """A model, the version in use, and those that there are."""

    name: str
    version: str | None
    versions: list[str]
    method: str | None
    promise: str | None


class Suggestion(BaseModel):
    """A false-alarm rate, and what to expect of it on the rows that suggested it; null if no row seems to be novel."""

    model: str
    version: str
    alpha: float
    novel_share: float
    precision: float | None
    recall: float | None
    words: str


class UseVersion(BaseModel):
    """Which version to put into use."""

    model_config = ConfigDict(extra="forbid")
    version: str


class Act(BaseModel):
    """An act. With the revision that its author saw, it is refused if that has changed since."""

    model_config = ConfigDict(extra="forbid")
    revision: Annotated[
        StrictInt | None, Field(description="What GET of the world or its groups gave; null to act anyway.")
    ] = None


class GroupAct(Act):
    """An act on a group."""

    group: StrictInt


class Name(GroupAct):
    """A name for a group."""

    label: Label


class Merge(GroupAct):
    """Two groups to become one; ``other`` is closed."""

    other: StrictInt


class Move(GroupAct):
    """A row to be moved into a group."""

    row: Label


class LabelRow(Act):
    """A class for one row."""

    row: Label
    label: Label


class Rollback(Act):
    """The version to return to."""

    version: StrictInt


class Audit(BaseModel):
    """How many random rows of the stream to label."""

    model_config = ConfigDict(extra="forbid")
    n: Annotated[StrictInt, Field(ge=1, le=10_000)]


class Done(BaseModel):
    """An act that is on disk, and the revision that it made."""

    revision: int


class Split(Done):
    """The two groups that a group became."""

    groups: tuple[int, int]


class Version(Done):
    """The version in use after a lesson."""

    version: int


class Undone(Done):
    """The kind of decision that was taken back or made again; null if there was none."""

    kind: str | None


class Group(BaseModel):
    """A group of unusual rows, as a reviewer sees it; ``rows`` are ids from the centre to the edge."""

    id: int
    size: int
    rows: list[Label]
    telling: list[str]
    nearest_class: Label
    joins_class: bool
    sure: float
    status: Status
    name: Label | None
    reassigned: int
    suggestions: list[Label]


class Groups(BaseModel):
    """The groups, and the revision at which they were read."""

    revision: int
    groups: list[Group]


class Row(BaseModel):
    """An observed row, with what the model said of it."""

    id: Label
    row: Any
    group: int | None
    label: Label | None
    novel: bool
    closest: Label
    novelty: float | None
    p_value: float | None


class Rows(BaseModel):
    """Rows, and the revision at which they were read."""

    revision: int
    rows: list[Row]


class AuditRow(BaseModel):
    """A row to label."""

    id: Label
    row: Any


class Audited(Done):
    """The rows to label."""

    rows: list[AuditRow]
