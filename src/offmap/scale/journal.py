"""What of a run is done: one line per written part, so that a killed run goes on where it stopped."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from offmap.scale.parts import Part, Position
from offmap.scale.sources import Source, Stamp


@dataclass(frozen=True, kw_only=True)
class Done:
    """A part that is written.

    Args:
        place: Place of its file in the source.
        file: Path of its file.
        stamp: Size and time of change of the file as it was found.
        row: Its first row in the file.
        rows: How many rows it has.
        ends: Whether it ends its file.
        scored: How many rows were written; fewer than ``rows`` if rows of unknown entities were skipped.
        novel: How many of them are novel.
        new: How many rows are of entities that the model does not know, written or skipped.
    """

    place: int
    file: str
    stamp: Stamp
    row: int
    rows: int
    ends: bool
    scored: int
    novel: int
    new: int = 0


class Journal:
    """The job and the parts that are done. A part is noted after it is on disk.

    Args:
        path: The file.
        job: What makes a job the same: model, source, columns, options.
    """

    def __init__(self, path: Path, job: dict[str, Any]) -> None:
        self.path, self.job = path, job
        self.done: list[Done] = []

    def left(self) -> tuple[Any, list[Done]]:
        """The job of an interrupted run and what it has done; None if it has not begun.

        A line that was cut short stands for a part that is not done.
        """
        lines = [json.loads(line) for line in self._lines()]
        found = [Done(**{**line, "stamp": Stamp(*line["stamp"])}) for line in lines[1:]]
        return (lines[0], found) if lines else (None, [])

    def start(self) -> None:
        """Begins the journal of a new run."""
        self.path.write_bytes(b"")
        self._append(self.job)

    def resume(self) -> None:
        """Goes on with the journal of an interrupted run, without the line that was cut short."""
        self.done = self.left()[1]
        os.truncate(self.path, sum(len(line) + 1 for line in self._lines()))

    def add(self, part: Part, scored: int, novel: int, new: int = 0) -> None:
        """Notes that a part is written."""
        done = Done(
            place=part.at.file,
            file=str(part.file.path),
            stamp=part.file.stamp,
            row=part.at.row,
            rows=part.rows,
            ends=part.ends,
            scored=scored,
            novel=novel,
            new=new,
        )
        self._append(asdict(done))
        self.done.append(done)

    def position(self, source: Source) -> Position:
        """Where to go on.

        Raises:
            ValueError: A file whose rows were scored has changed, or another file has taken its place.
        """
        for done in {each.file: each for each in self.done}.values():
            _require_same(done, source)
        if not self.done:
            return Position()
        last, before = self.done[-1], sum(done.rows for done in self.done)
        return Position(last.place + 1, 0, before) if last.ends else Position(last.place, last.row + last.rows, before)

    def _lines(self) -> list[bytes]:
        return self.path.read_bytes().split(b"\n")[:-1]

    def _append(self, line: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
            stream.flush()
            os.fsync(stream.fileno())


def _require_same(done: Done, source: Source) -> None:
    now = source.files[done.place] if done.place < len(source.files) else None
    if now is None or str(now.path) != done.file:
        raise ValueError(f"cannot resume: {done.file} is not at its place among the files; start anew")
    if now.stamp != done.stamp:
        raise ValueError(f"cannot resume: {done.file} has changed since its rows were scored; start anew")
