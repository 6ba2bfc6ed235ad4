"""The object that a person or a service holds: one world, kept in one folder, resumable at any moment."""

import copy
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offmap import parameters
from offmap.labels import check_labels
from offmap.loop import checks
from offmap.loop.auditing import draw, new_audits
from offmap.loop.configuration import describe, require_incremental, restore
from offmap.loop.folder import make_journal, open_journal, read_model
from offmap.loop.grouping import halves
from offmap.loop.ledger import Ledger
from offmap.loop.report import status_of
from offmap.loop.review import group_new_rows, views
from offmap.loop.rows import as_given, pack
from offmap.loop.state import GroupStatus, Label, State
from offmap.loop.views import AuditRow, GroupView, Status
from offmap.openset.incremental import IncrementalClassifier
from offmap.parameters import Count, Natural, Share
from offmap.store import Journal
from offmap.verdict import Verdict


@final
class OpenWorld:
    """Finds rows of unknown classes, groups them, learns the groups that a person names, and keeps its promise.

    Everything is in one folder. Each act is one entry of a journal, on disk when the method returns; the state is what
    the entries add up to. Use ``create`` or ``open``, and ``close`` or a ``with`` block at the end: one process at a
    time can have the folder open.

    Args:
        folder: The folder.
        journal: Its open journal.

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

    def __init__(self, folder: Path, journal: Journal) -> None:
        self._ledger = Ledger(folder, journal)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        classifier: Any,
        alpha: float | None = None,
        review: float = 0.2,
        min_group: int = 5,
        seed: int = 0,
    ) -> Self:
        """Makes a world in a new folder.

        Args:
            path: The folder.
            classifier: An unfitted classifier that has ``partial_fit``.
            alpha: False-alarm rate to keep; by default that of the classifier.
            review: Rows with a p-value up to this wait to be grouped, though those above ``alpha`` are not rejected. A
                model that rejects little, in order to keep its promise, still finds new classes among them.
            min_group: Smallest group that is proposed, and fewest rows from which a new class is learnt.
            seed: Seed of audits and groups, and of the classifier if it has none.
        """
        parameters.require("review", review, Share)
        parameters.require("min_group", min_group, Count)
        parameters.require("seed", seed, Natural)
        chosen = copy.deepcopy(require_incremental(classifier))
        chosen.set_params(alpha=chosen.alpha if alpha is None else alpha)
        if chosen.random_state is None:
            chosen.set_params(random_state=seed)
        content = {
            "classifier": describe(chosen),
            "review": float(review),
            "min_group": int(min_group),
            "seed": int(seed),
        }
        journal = make_journal(path)
        journal.append("created", content)
        return cls(Path(path), journal)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, wait: float = 0.0) -> Self:
        """Opens the world in a folder.

        Args:
            path: The folder.
            wait: Seconds to wait for another process to close it.
        """
        journal = open_journal(path, wait)
        try:
            return cls(Path(path), journal)
        except BaseException:
            journal.close()
            raise

    def close(self) -> None:
        """Lets go of the folder; nothing needs to be saved, since every act is on disk already."""
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
    def classifier(self) -> IncrementalClassifier:
        """The version of the model in use, to be read and not to be fitted."""
        return self._ledger.classifier

    def teach(self, X: Any, y: ArrayLike) -> int:
        """Learns labelled rows that are a random sample of their classes, and returns the new version.

        A share of them is held out to set the threshold. Rows that were found by reviewing belong to ``learn``.
        """
        rows = as_given(X)
        labels = check_labels(self, rows, y)
        taught = self.state.version is not None
        model = copy.deepcopy(self.classifier) if taught else restore(self._ledger.settings["classifier"])
        model.partial_fit(rows, labels)
        first = self._ledger.journal.next_row()
        numbers = range(first, first + len(rows))
        lesson = dict(zip(numbers, labels.tolist(), strict=True))
        return self._ledger.new_version("taught", model, lesson, dict(zip(numbers, pack(rows), strict=True)))

    def observe(self, X: Any, ids: Iterable[Label] | None = None) -> Verdict:
        """Assesses rows of the stream; the unusual ones wait to be grouped.

        Args:
            X: Texts, feature rows or images.
            ids: Your name of each row, by default a number. A row that was observed before under its id is assessed
                again and has no other effect.
        """
        rows, ledger = as_given(X), self._ledger
        verdict, packed = ledger.classifier.assess(rows), pack(rows)
        first = ledger.journal.next_row()
        names = checks.ids_of(len(rows), ids, first)
        fresh = checks.new_rows(names, packed, self.state, ledger.journal)
        numbers = list(range(first, first + len(fresh)))
        if fresh:
            content = {"rows": numbers, "ids": [names[place] for place in fresh], "version": self.state.version}
            payload = {number: packed[place] for number, place in zip(numbers, fresh, strict=True)}
            ledger.record("observed", content | ledger.columns(verdict, fresh), payload)
        return verdict

    def groups(self, *statuses: GroupStatus, limit: int | None = None) -> list[GroupView]:
        """The groups that wait for a decision, large and clear ones first and skipped ones last.

        Rows that came since the last call join a group or start one; groups that exist keep their ids and rows.

        Args:
            statuses: Which groups to give instead, such as "named" or "discarded".
            limit: At most so many.
        """
        group_new_rows(self._ledger)
        wanted = statuses or ("open", "skipped")
        found = [group for group in self.state.groups.values() if group.status in wanted and group.rows]
        shown = views(self._ledger, found)
        shown.sort(key=lambda view: (view.status == "skipped", -view.size * view.sure, view.id))
        return shown[:limit]

    def rows(self, ids: Iterable[Label]) -> NDArray[Any]:
        """Observed rows as they were given, by their ids."""
        return self._ledger.memory.rows([checks.number_of(self.state, identity) for identity in ids])

    def name(self, group: int, label: Label) -> None:
        """Says which class a group is; it may be a known class. ``learn`` teaches it to the model."""
        found = checks.live_group(self.state, group)
        self._ledger.record("named", {"group": found.id, "label": self._ledger.checked_label(label)})

    def merge(self, group: int, other: int) -> None:
        """Moves all rows of ``other`` into ``group``, which keeps its id; ``other`` is closed."""
        kept, gone = checks.live_group(self.state, group), checks.live_group(self.state, other)
        if kept.id == gone.id:
            raise ValueError(f"group {group} cannot be merged with itself; name two groups")
        self._ledger.record("merged", {"group": kept.id, "other": gone.id})

    def split(self, group: int) -> tuple[int, int]:
        """Closes a group and makes two of it, where its rows are furthest apart; returns their ids."""
        found = checks.live_group(self.state, group)
        if len(found.rows) < 2:
            raise ValueError(f"group {group} has {len(found.rows)} row(s); it takes two to split it")
        side = halves(self._ledger.memory.vectors(self.classifier, found.rows), self._ledger.spread()[0])
        first = self._ledger.history.next_group
        parts = [(first + half, [row for row, s in zip(found.rows, side, strict=True) if s == half]) for half in (0, 1)]
        self._ledger.record("split", {"group": found.id, "parts": parts})
        return first, first + 1

    def move(self, row: Label, group: int) -> None:
        """Moves one row, named by its id, into a group."""
        number, found = checks.number_of(self.state, row), checks.live_group(self.state, group)
        checks.require_untaught(self.state, number)
        self._ledger.record("moved", {"row": number, "group": found.id})

    def discard(self, group: int) -> None:
        """Takes a group out of the queue; ``name``, ``skip`` or ``undo`` bring it back."""
        self._ledger.record("discarded", {"group": checks.live_group(self.state, group).id})

    def skip(self, group: int) -> None:
        """Puts a group at the end of the queue."""
        self._ledger.record("skipped", {"group": checks.live_group(self.state, group).id})

    def audit(self, n: int) -> list[AuditRow]:
        """Draws random rows of the stream to label, so that the false-alarm rate can be kept and measured.

        They are drawn from the rows observed since the last version, whatever the model said of them. Audit rows that
        were drawn before and have no label yet come first. Their labels set the next threshold, and train the model
        too if it can score a training row as if it had not seen it, as ``AnalyticClassifier`` can.
        """
        parameters.require("n", n, Count)
        return draw(self._ledger, n)

    def label(self, row: Label, label: Label) -> None:
        """Says which class one row is of, for ``learn``. Labels of audit rows also set the next threshold."""
        number = checks.number_of(self.state, row)
        checks.require_untaught(self.state, number)
        self._ledger.record("labelled", {"row": number, "label": self._ledger.checked_label(label)})

    def learn(self) -> int:
        """Teaches named groups and labelled rows to the model, sets its threshold anew, and returns the new version.

        Rows that still wait are assessed again; those that the new version knows leave their groups.
        """
        rows = self._ledger.lesson()
        if not rows and not new_audits(self.state):
            raise ValueError(checks.nothing_to_learn(self.state, self._ledger.settings["min_group"]))
        model = copy.deepcopy(self.classifier)
        labels = np.asarray(list(rows.values()))
        # Without new rows the held-out ones are scored again all the same, so that audit rows can set the threshold.
        if rows:
            model.partial_fit(self._ledger.memory.rows(list(rows)), labels, calibrate=False)
        else:
            model.calibrate_again()
        return self._ledger.new_version("learnt", model, rows)

    def undo(self) -> str | None:
        """Takes the last decision back and says what it was; None if there is none. What was observed stays."""
        if not self._ledger.history.done:
            return None
        kind = self._ledger.history.kind_of(self._ledger.history.done[-1])
        self._ledger.record("undone", {})
        return kind

    def redo(self) -> str | None:
        """Makes the decision again that was undone last and says what it was; None if there is none."""
        if not self._ledger.history.undone:
            return None
        kind = self._ledger.history.kind_of(self._ledger.history.undone[-1])
        self._ledger.record("redone", {})
        return kind

    def rollback(self, version: int) -> None:
        """Returns to an earlier version of the model; groups learnt since are named again and wait for ``learn``."""
        model = checks.earlier_version(self.state, version)
        later = [number for number, row in self.state.rows.items() if row.version > version]
        content = {
            "version": version,
            "untaught": checks.taught_since(self._ledger.history, version),
            "assessed": self._ledger.assessed(read_model(self._ledger.folder, model), later),
        }
        self._ledger.record("rolled back", content)

    def status(self) -> Status:
        """Counts, the promise that holds now, and how many audit rows it asks for."""
        alpha = float(self._ledger.settings["classifier"]["parameters"]["alpha"])
        return status_of(self.state, alpha, to_learn=len(self._ledger.lesson()))
