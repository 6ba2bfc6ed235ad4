"""The object that a person or a service holds: one world, kept in one folder, resumable at any moment."""

import os
from collections.abc import Iterable
from typing import Any, Self, final

from numpy.typing import ArrayLike, NDArray

from offmap import parameters
from offmap.loop import checks, decisions, lessons, stream
from offmap.loop.auditing import draw
from offmap.loop.configuration import settings_of
from offmap.loop.home import Home, make_home, open_home
from offmap.loop.ledger import Ledger
from offmap.loop.report import acts_after, status_of
from offmap.loop.review import group_new_rows, queue
from offmap.loop.state import GroupStatus, Label, State
from offmap.loop.views import ActView, AuditRow, GroupView, Status
from offmap.openset.incremental import IncrementalClassifier
from offmap.parameters import Count
from offmap.verdict import Verdict


@final
class OpenWorld:
    """Finds rows of unknown classes, groups them, learns the groups that a person names, and keeps its promise.

    Each act is one entry of a journal, on disk when the method returns; the state is what the entries add up to. The
    journal is in a folder, which one process at a time can have open, or in a PostgreSQL database, where several take
    turns and each sees what the others did. Use ``create`` or ``open``, and ``close`` or a ``with`` block at the end.

    An act takes ``expected``, the ``revision`` that the reader saw when deciding. If what the act is about was changed
    since, ``StaleActError`` says how, and nothing is done.

    Args:
        home: Where the world is kept.

    Example:
        >>> import tempfile
        >>> from offmap.data import hold_out_classes, load
        >>> from offmap.openset import AnalyticClassifier
        >>> digits = load("digits")
        >>> split = hold_out_classes(digits.X, digits.y, known=range(7), test_size=0.4, seed=0)
        >>> folder = tempfile.mkdtemp()
        >>> classifier = AnalyticClassifier(width=500, calibration=0.3, random_state=0)
        >>> with OpenWorld.create(f"{folder}/digits.world", classifier=classifier) as world:
        ...     _ = world.teach(split.X_train, split.y_train)
        ...     verdict = world.observe(split.X_test)
        ...     largest = max(world.groups(), key=lambda group: group.size)
        ...     world.name(largest.id, 7)
        ...     _ = world.learn()
        ...     print(world.status().classes)
        8
    """

    def __init__(self, home: Home) -> None:
        self._ledger = Ledger(home)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        classifier: Any,
        alpha: float | None = None,
        review: float = 0.2,
        min_group: int = 5,
        reassign: bool = True,
        seed: int = 0,
        store: str | None = None,
    ) -> Self:
        """Makes a world in a new folder, or in a database.

        Args:
            path: The folder, or the name of the world in the database.
            classifier: An unfitted classifier that has ``partial_fit``.
            alpha: False-alarm rate to keep; by default that of the classifier.
            review: Rows with a p-value up to this wait to be grouped, though those above ``alpha`` are not rejected. A
                model that rejects little, in order to keep its promise, still finds new classes among them.
            min_group: Smallest group that is proposed, and fewest rows from which a new class is learnt.
            reassign: Whether rows of a named group that nobody labelled or moved may be learnt as another class, if
                they lie among its rows. Switch it off if whoever names a group has read all of it.
            seed: Seed of audits and groups, and of the classifier if it has none.
            store: URL of a PostgreSQL database, as ``postgresql://user@host/database``, that keeps the journal, the
                rows and the versions of the model; by default they are in the folder.
        """
        content = settings_of(classifier, alpha=alpha, review=review, min_group=min_group, reassign=reassign, seed=seed)
        home = make_home(path, store)
        home.journal.append("created", content, after=0)
        return cls(home)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, store: str | None = None, wait: float | None = None) -> Self:
        """Opens a world.

        Args:
            path: The folder, or the name of the world in the database.
            store: URL of the PostgreSQL database that keeps it, if it is not in a folder.
            wait: Seconds to wait for other processes: for one that has the folder open, by default not at all, or for
                a turn in the database, by default a minute.
        """
        home = open_home(path, store, wait)
        try:
            return cls(home)
        except BaseException:
            home.journal.close()
            raise

    def close(self) -> None:
        """Lets go of the folder or the database; nothing needs to be saved, since every act is on disk already."""
        self._ledger.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def state(self) -> State:
        """The state, to be read and not to be changed."""
        return self._ledger.state

    @property
    def revision(self) -> int:
        """Number of the last entry of the journal that ``state`` includes; every act makes it larger."""
        return self._ledger.history.revision

    def refresh(self) -> int:
        """Takes in what other processes did, as every act does by itself, and returns the revision."""
        self._ledger.refresh()
        return self.revision

    def acts(self, after: int = 0) -> list[ActView]:
        """Decisions, undos and redos after a revision, in order; what was undone is among them."""
        return acts_after(self._ledger.history, after)

    @property
    def classifier(self) -> IncrementalClassifier:
        """The version of the model in use, to be read and not to be fitted."""
        return self._ledger.classifier

    def teach(self, X: Any, y: ArrayLike, *, expected: int | None = None) -> int:
        """Learns labelled rows that are a random sample of their classes, and returns the new version.

        A share of them is held out to set the threshold. Rows that were found by reviewing belong to ``learn``.
        """
        with self._ledger.turn(expected) as ledger:
            return lessons.teach(ledger, X, y)

    def observe(self, X: Any, ids: Iterable[Label] | None = None) -> Verdict:
        """Assesses rows of the stream; the unusual ones wait to be grouped.

        Args:
            X: Texts, feature rows or images. The columns of a data frame are matched by name with those that were
                taught; others are ignored.
            ids: Your name of each row, by default a number. A row that was observed before under its id is assessed
                again and has no other effect.
        """
        return stream.observe(self._ledger, X, ids)

    def groups(self, *statuses: GroupStatus, limit: int | None = None) -> list[GroupView]:
        """The groups that wait for a decision, those that teach most first and skipped ones last.

        Rows that came since the last call join a group or start one; groups that exist keep their ids and rows.

        Args:
            statuses: Which groups to give instead, such as "named" or "discarded".
            limit: At most so many.
        """
        if limit is not None:
            parameters.require("limit", limit, Count)
        for status in statuses:
            parameters.require("statuses", status, GroupStatus)
        group_new_rows(self._ledger)
        return queue(self._ledger, statuses or ("open", "skipped"))[:limit]

    def rows(self, ids: Iterable[Label]) -> NDArray[Any]:
        """Observed rows as they were given, by their ids."""
        numbers = [checks.number_of(self.state, identity) for identity in ids]
        if not numbers:
            raise ValueError("ids must name at least one row")
        return self._ledger.memory.rows(numbers)

    def name(self, group: int, label: Label, *, expected: int | None = None) -> None:
        """Says which class a group is; it may be a known class. ``learn`` teaches it to the model.

        A new name must differ from those of other classes in more than case, unless known classes differ in case alone.
        """
        with self._ledger.turn(expected, ("group", group)) as ledger:
            decisions.name(ledger, group, label)

    def merge(self, group: int, other: int, *, expected: int | None = None) -> None:
        """Moves all rows of ``other`` into ``group``, which keeps its id; ``other`` is closed."""
        with self._ledger.turn(expected, ("group", group), ("group", other)) as ledger:
            decisions.merge(ledger, group, other)

    def split(self, group: int, *, expected: int | None = None) -> tuple[int, int]:
        """Closes a group and makes two of it, where its rows are furthest apart; returns their ids."""
        with self._ledger.turn(expected, ("group", group)) as ledger:
            return decisions.split(ledger, group)

    def move(self, row: Label, group: int, *, expected: int | None = None) -> None:
        """Moves one row, named by its id, into a group."""
        with self._ledger.turn(expected, ("row", row), ("group", group)) as ledger:
            decisions.move(ledger, row, group)

    def discard(self, group: int, *, expected: int | None = None) -> None:
        """Takes a group out of the queue; ``name``, ``skip`` or ``undo`` bring it back."""
        with self._ledger.turn(expected, ("group", group)) as ledger:
            decisions.discard(ledger, group)

    def skip(self, group: int, *, expected: int | None = None) -> None:
        """Puts a group at the end of the queue."""
        with self._ledger.turn(expected, ("group", group)) as ledger:
            decisions.skip(ledger, group)

    def audit(self, n: int) -> list[AuditRow]:
        """Draws random rows of the stream to label, so that the false-alarm rate can be kept and measured.

        They are drawn from the rows observed since the last version, whatever the model said of them. Audit rows that
        were drawn before and have no label yet come first. Their labels set the next threshold, and train the model
        too if it can score a training row as if it had not seen it, as ``AnalyticClassifier`` can.
        """
        parameters.require("n", n, Count)
        with self._ledger.turn() as ledger:
            return draw(ledger, n)

    def label(self, row: Label, label: Label, *, expected: int | None = None) -> None:
        """Says which class one row is of, for ``learn``. Labels of audit rows also set the next threshold."""
        with self._ledger.turn(expected, ("row", row)) as ledger:
            decisions.label(ledger, row, label)

    def learn(self, *, expected: int | None = None) -> int:
        """Teaches named groups and labelled rows to the model, sets its threshold anew, and returns the new version.

        Rows that a person labelled or moved, and the row at the centre of each named group, are learnt as named. With
        ``reassign``, the other rows of a group are learnt as the class that spreads to them from these, and are looked
        at again at each lesson, if the classifier can forget rows, as ``AnalyticClassifier`` can; ``reassigned`` of the
        status and of each group counts those that got another class. Rows that still wait are assessed again; those
        that the new version knows leave their groups.
        """
        with self._ledger.turn(expected) as ledger:
            return lessons.learn(ledger)

    def undo(self, *, expected: int | None = None) -> str | None:
        """Takes the last decision back and says what it was; None if there is none. What was observed stays."""
        with self._ledger.turn(expected) as ledger:
            return decisions.undo(ledger)

    def redo(self, *, expected: int | None = None) -> str | None:
        """Makes the decision again that was undone last and says what it was; None if there is none."""
        with self._ledger.turn(expected) as ledger:
            return decisions.redo(ledger)

    def rollback(self, version: int, *, expected: int | None = None) -> None:
        """Returns to an earlier version of the model; groups learnt since are named again and wait for ``learn``."""
        with self._ledger.turn(expected) as ledger:
            lessons.rollback(ledger, version)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Writes the model in use to a file that ``offmap.load`` reads, and returns its version."""
        self._ledger.refresh()
        lessons.with_names(self._ledger, self.classifier).save(path)
        assert self.state.version is not None
        return self.state.version

    def status(self) -> Status:
        """Counts, the promise that holds now, and how many audit rows it asks for."""
        self._ledger.refresh()
        return status_of(self._ledger)
