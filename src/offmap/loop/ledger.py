"""The journal of a world together with what follows from it: the state, the model in use, and rows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from offmap.loop.acts import Subject, require_current
from offmap.loop.home import Home
from offmap.loop.memory import Memory
from offmap.loop.portraits import Portraits
from offmap.loop.promise import calibrate, from_groups, leaves_out, unseen_novelty
from offmap.loop.reading import read_history
from offmap.loop.spread import Spread
from offmap.loop.state import Label, State
from offmap.openset.incremental import IncrementalClassifier
from offmap.verdict import Verdict

# Rows of each known class that tell the spread; more would only take longer.
_SPREAD_ROWS = 50
# Rows of the stream that tell how often which novelty occurs.
_STREAM_ROWS = 2000


class Ledger:
    """Writes entries and keeps what they add up to.

    Args:
        home: Where the world is kept.
    """

    def __init__(self, home: Home) -> None:
        entries = list(home.journal.entries())
        self.history = read_history(home.where, entries)
        self.home, self.journal = home, home.journal
        self.settings = entries[0].content
        self.memory = Memory(home.journal)
        self.portraits = Portraits(self.memory)
        self._model: tuple[int, IncrementalClassifier] | None = None
        self._spread: tuple[dict[int, Label], Spread, list[Label]] | None = None

    @contextmanager
    def turn(self, expected: int | None = None, *subjects: Subject) -> Iterator[Self]:
        """Takes in what other processes did, and keeps them from acting while the block runs.

        Args:
            expected: The revision that an act was decided upon, which is refused if it is stale; None if it cannot be.
            subjects: What the act is about; none if it is about everything.
        """
        with self.journal.turn():
            self.refresh()
            history = self.history
            require_current(
                history.acts, history.state, expected=expected, revision=history.revision, subjects=subjects
            )
            yield self

    def refresh(self) -> None:
        """Takes in what other processes did."""
        for entry in self.journal.entries(self.history.revision):
            self.history.add(entry)

    @property
    def state(self) -> State:
        """What the entries add up to."""
        return self.history.state

    @property
    def classifier(self) -> IncrementalClassifier:
        """The version of the model in use."""
        version = self.state.version
        if version is None:
            raise ValueError("no classes are known yet: teach some first")
        if self._model is None or self._model[0] != version:
            self._model = version, self.home.read_model(self.state.versions[version])
        return self._model[1]

    def record(self, kind: str, content: Mapping[str, Any], rows: Mapping[int, bytes] | None = None) -> None:
        """Writes an entry, then changes the state: an entry that cannot be written changes nothing."""
        self.history.add(self.journal.append(kind, content, rows, after=self.history.revision))

    def new_version(
        self,
        kind: str,
        model: IncrementalClassifier,
        lesson: Mapping[int, Label],
        payload: Mapping[int, bytes] | None = None,
        columns: Sequence[str] | None = None,
    ) -> int:
        """Sets the threshold of a model that has learnt ``lesson``, and puts it into use as a new version.

        Args:
            kind: "taught" or "learnt".
            model: The model.
            lesson: Rows that it has learnt, with their class.
            payload: Rows that are not in the journal yet.
            columns: Names of the features, if the rows have some.
        """
        audits = self.state.audited()
        trained = [number in lesson or number in self.state.taught for number in audits]
        X = self.memory.rows(list(audits)) if audits else None
        sampled = self.state.sampled_classes() | (set(lesson.values()) if kind == "taught" else set())
        learnt = self._learnt_rows(model, lesson, payload or {}, sampled)
        stream = self._stream_novelty(model, lesson) if audits and leaves_out(model) else None
        calibration = calibrate(model, X, list(audits.values()), trained, learnt, stream, sampled)
        number = self.history.next_version
        content = {
            "version": number,
            "classes": model.classes_.tolist(),
            "calibration": calibration.to_json(),
            "audits": list(audits),
            "first_row": self.journal.next_row() + len(payload or {}),
            "rows": list(lesson),
            "labels": list(lesson.values()),
            "groups": self._learnt_groups(lesson) if kind == "learnt" else [],
            "assessed": self.assessed(model, [row for row in self.state.waiting() if row not in lesson]),
        }
        if columns is not None:
            content["columns"] = [*columns]
        with self.home.new_model(model, number, after=self.history.revision) as digest:
            self.record(kind, content | {"digest": digest}, payload)
        self._model = number, model
        return number

    def lesson(self) -> dict[int, Label]:
        """Rows that the next version would learn, with their classes; a new class needs as many rows as a group."""
        if self.state.version is None:
            return {}
        rows = self.state.training_rows(audits=leaves_out(self.classifier))
        counts, known = Counter(rows.values()), set(self.state.versions[self.state.version].classes)
        least = self.settings["min_group"]
        return {number: label for number, label in rows.items() if label in known or counts[label] >= least}

    def spread(self) -> tuple[Spread, list[Label]]:
        """The spread of the known classes, from the rows that taught them, and the classes in its order."""
        labels = self.state.taught
        if self._spread is None or self._spread[0] != labels:
            self._spread = dict(labels), *self._new_spread(labels)
        return self._spread[1:]

    def _new_spread(self, labels: Mapping[int, Label]) -> tuple[Spread, list[Label]]:
        by_class: dict[Label, list[int]] = {}
        for number, label in labels.items():
            by_class.setdefault(label, []).append(number)
        classes = sorted(by_class, key=lambda label: (str(type(label)), label))
        chosen = [number for label in classes for number in by_class[label][:_SPREAD_ROWS]]
        codes = np.array([classes.index(labels[number]) for number in chosen])
        images = len(self.classifier.input_shape_) > 1
        return Spread.of(self.memory.vectors(self.classifier, chosen), codes, one_unit=images), classes

    def _learnt_rows(
        self,
        model: IncrementalClassifier,
        lesson: Mapping[int, Label],
        payload: Mapping[int, bytes],
        sampled: set[Label],
    ) -> tuple[NDArray[Any], list[Label]] | None:
        """Training rows of the classes that came from groups."""
        grouped = set(from_groups(model, sampled).tolist())
        rows = {**self.state.taught, **lesson}
        chosen = [number for number, label in rows.items() if label in grouped and number not in payload]
        return (self.memory.rows(chosen), [rows[number] for number in chosen]) if chosen else None

    def _stream_novelty(self, model: IncrementalClassifier, lesson: Mapping[int, Label]) -> NDArray[np.float64]:
        """The novelty of random rows of the stream, for a model that has not seen them."""
        numbers = list(self.state.rows)
        rng = np.random.default_rng([self.settings["seed"], len(self.history.entries)])
        if len(numbers) > _STREAM_ROWS:
            numbers = sorted(rng.choice(numbers, _STREAM_ROWS, replace=False).tolist())
        taught = {**self.state.taught, **lesson}
        trained = np.array([number in taught for number in numbers])
        labels = np.array([taught.get(number, model.unknown_label_) for number in numbers])
        return unseen_novelty(model, self.memory.rows(numbers), labels, trained)

    def _learnt_groups(self, lesson: Mapping[int, Label]) -> list[int]:
        labels = set(lesson.values())
        groups = self.state.groups.values()
        return [group.id for group in groups if group.status == "named" and group.name in labels]

    def assessed(self, model: IncrementalClassifier, numbers: Sequence[int]) -> list[tuple[Any, ...]]:
        """What a version says of rows, as the journal keeps it."""
        if not numbers:
            return []
        verdict = self.columns(model.assess(self.memory.rows(numbers)))
        return list(zip(numbers, *verdict.values(), strict=True))

    def columns(self, verdict: Verdict, places: Sequence[int] | None = None) -> dict[str, list[Any]]:
        """A verdict as the journal keeps it; numbers that JSON has no word for are None."""
        chosen = np.arange(len(verdict)) if places is None else np.asarray(places, dtype=int)
        assert verdict.closest is not None
        p_value = np.full(len(verdict), np.nan) if verdict.p_value is None else verdict.p_value
        return {
            "novel": verdict.novel[chosen].tolist(),
            "closest": verdict.closest[chosen].tolist(),
            "novelty": _finite(verdict.novelty[chosen]),
            "p_value": _finite(p_value[chosen]),
            "waits": (verdict.novel | (p_value <= self.settings["review"]))[chosen].tolist(),
        }


def _finite(values: NDArray[np.float64]) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]
