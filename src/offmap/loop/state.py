"""The state of a world: rows, groups and versions, as one entry after another leaves them."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Label = int | str
GroupStatus = Literal["open", "skipped", "named", "learnt", "discarded", "merged", "split"]
# Groups that a person may still act on.
LIVE: tuple[GroupStatus, ...] = ("open", "skipped", "named", "discarded")


@dataclass(slots=True)
class Row:
    """What is known of one observed row.

    Args:
        id: The user's name of it.
        version: The model that assessed it last.
        novel: Whether that model rejected it.
        closest: Its most likely known class.
        novelty: Its novelty.
        p_value: Its p-value; None if the model has none.
        waits: Whether it is unusual enough to be reviewed.
        group: The group it is in.
        label: The class that a person gave it.
        audited: Whether it is an audit row, a random one of the stream.
        moved: Whether a person put it into its group.
    """

    id: Label
    version: int
    novel: bool
    closest: Label
    novelty: float | None
    p_value: float | None
    waits: bool
    group: int | None = None
    label: Label | None = None
    audited: bool = False
    moved: bool = False


@dataclass(slots=True)
class Group:
    """Rows that belong together.

    Args:
        id: Its number, never used again.
        rows: Numbers of its rows, in the order in which they joined.
        status: What became of it.
        name: The class that a person named.
        became: The group it was merged into, or those it was split into.
        version: The model that learnt it.
    """

    id: int
    rows: list[int]
    status: GroupStatus = "open"
    name: Label | None = None
    became: tuple[int, ...] = ()
    version: int | None = None


@dataclass(slots=True)
class Version:
    """One version of the model.

    Args:
        number: Its number, never used again.
        digest: SHA-256 of its file.
        kind: Whether it was taught by a random sample of its classes, or learnt from what was found by reviewing.
        entry: Number of the journal's entry that made it; observations after it are its own.
        first_row: The first row observed since.
        classes: The known classes.
        calibration: How its threshold was set, as ``Calibration`` says it.
        audits: Audit rows that set its threshold.
        lesson: Rows that it learnt, with their class.
        before: The version that learnt them; None for the first.
    """

    number: int
    digest: str
    kind: Literal["taught", "learnt"]
    entry: int
    first_row: int
    classes: list[Label]
    calibration: dict[str, Any]
    audits: list[int]
    lesson: dict[int, Label]
    before: int | None


@dataclass(slots=True)
class State:
    """Everything that the journal says, but for entries that were undone.

    Args:
        rows: Observed rows by number.
        taught: Rows of the known classes that were taught or learnt, by number, with their class.
        groups: Groups by id.
        versions: Versions of the model by number.
        version: The version in use; None before the first lesson.
        first_row: The first row observed since the version in use was made.
        grouped: Rows with a number up to this one have been looked at by the grouping.
        numbers: Number of each row by its id.
        largest_id: The largest id that is a number.
        columns: Names of the features, if the first lesson had some.
    """

    rows: dict[int, Row] = field(default_factory=dict)
    taught: dict[int, Label] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    versions: dict[int, Version] = field(default_factory=dict)
    version: int | None = None
    first_row: int = 0
    grouped: int = 0
    numbers: dict[Label, int] = field(default_factory=dict)
    largest_id: int = -1
    columns: list[str] | None = None

    def waiting(self) -> list[int]:
        """Numbers of the unusual rows that nobody has dealt with yet, in no group or in one that is open."""
        return [number for number, row in self.rows.items() if self._waits(row)]

    def ungrouped(self) -> list[int]:
        """Numbers of the waiting rows that are in no group."""
        return [number for number in self.waiting() if self.rows[number].group is None]

    def training_rows(self, audits: bool) -> dict[int, Label]:
        """Rows that the next lesson would add: those of named groups, and labelled ones with or without ``audits``."""
        found: dict[int, Label] = {}
        for number, row in self.rows.items():
            group = self.groups.get(row.group) if row.group is not None else None
            label = row.label if row.label is not None else group.name if group and group.status == "named" else None
            if (
                label is not None
                and number not in self.taught
                and (not row.audited or (audits and row.label is not None))
            ):
                found[number] = label
        return found

    def given_names(self, group: int | None = None, row: int | None = None) -> list[Label]:
        """Classes that people gave to groups that are to be learnt and to rows, but for one group or row."""
        groups = (one.name for one in self.groups.values() if one.status == "named" and one.rows and one.id != group)
        rows = (one.label for number, one in self.rows.items() if number != row)
        return [name for name in dict.fromkeys((*groups, *rows)) if name is not None]

    def lineage(self, version: int) -> list[Version]:
        """The version and those that it was made from, the first one first."""
        found: list[Version] = []
        number: int | None = version
        while number is not None:
            found.append(self.versions[number])
            number = found[-1].before
        return found[::-1]

    def sampled_classes(self) -> set[Label]:
        """Classes that were taught by a random sample of their rows, not only learnt from groups."""
        lessons = self.lineage(self.version) if self.version else []
        return {label for version in lessons if version.kind == "taught" for label in version.lesson.values()}

    def outdated(self) -> list[int]:
        """Rows whose verdict is not of the version in use though they came after it, or of one that was undone."""
        if self.version is None:
            return []
        known = {version.number for version in self.lineage(self.version)}
        return [
            number
            for number, row in self.rows.items()
            if row.version not in known or (number >= self.first_row and row.version != self.version)
        ]

    def reassigned(self, group: Group) -> int:
        """How many rows of a learnt group were learnt as another class than it was named, by no person's label."""
        if group.status != "learnt":
            return 0
        unread = (number for number in group.rows if self.rows[number].label is None)
        return sum(self.taught.get(number, group.name) != group.name for number in unread)

    def audited(self) -> dict[int, Label]:
        """Audit rows that a person has labelled."""
        found = ((number, row.label) for number, row in self.rows.items() if row.audited)
        return {number: label for number, label in found if label is not None}

    def to_bytes(self) -> bytes:
        """The whole state in one canonical form: equal states give equal bytes."""
        plain = {
            "rows": {number: asdict(row) for number, row in sorted(self.rows.items())},
            "taught": dict(sorted(self.taught.items())),
            "groups": {number: asdict(group) for number, group in sorted(self.groups.items())},
            "versions": {number: asdict(version) for number, version in sorted(self.versions.items())},
            "version": self.version,
            "first_row": self.first_row,
            "grouped": self.grouped,
            "columns": self.columns,
        }
        return json.dumps(plain, ensure_ascii=False).encode()

    def _waits(self, row: Row) -> bool:
        if not row.waits or row.label is not None:
            return False
        return row.group is None or self.groups[row.group].status in ("open", "skipped")
