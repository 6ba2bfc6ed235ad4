"""One turn of the open-world loop on digits: 7, 8 and 9 are found, grouped, named and learnt."""

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from offmap.data import OpenSplit
from offmap.loop import GroupView, OpenWorld
from offmap.openset import AnalyticClassifier

_SHOWN = 5


@dataclass(frozen=True)
class Turn:
    """What one turn of the loop achieved, on test images that took no part in it.

    Args:
        rejected: Images of the stream that the first model rejected.
        groups: How many groups were looked at.
        named: Names that were given to groups of new digits.
        joined: Known digits that groups were returned to.
        known_before: Accuracy on the digits 0–6 before the turn.
        known_after: Accuracy on them afterwards.
        learnt_after: Accuracy on the digits 7–9 afterwards; it was 0 before.
        promise: What is promised about false alarms afterwards.
    """

    rejected: int
    groups: int
    named: tuple[int, ...]
    joined: tuple[int, ...]
    known_before: float
    known_after: float
    learnt_after: float
    promise: str

    @property
    def sentence(self) -> str:
        """The turn in a sentence."""
        named, joined = (", ".join(map(str, sorted(set(digits)))) for digits in (self.named, self.joined))
        returned = f"; groups that looked like {joined} were returned to them" if joined else ""
        return (
            f"the loop rejected {self.rejected} images, looked at {self.groups} groups and named {named}{returned}; "
            f"accuracy on 0–6: {self.known_before:.1%} before, {self.known_after:.1%} after; "
            f"on 7–9: {self.learnt_after:.1%} after"
        )


def turn(split: OpenSplit, seed: int) -> Turn:
    """Half of the test images are the stream; their labels stand in for a person who looks at groups of images."""
    order = np.random.default_rng(seed).permutation(len(split.y_test))
    stream, test = np.sort(order[::2]), order[1::2]
    truth = {int(row): int(split.y_test[row]) for row in stream}
    known, new = (test[split.unknown[test] == unknown] for unknown in (False, True))
    classifier = AnalyticClassifier(calibration=0.3, random_state=seed)
    with (
        tempfile.TemporaryDirectory() as folder,
        OpenWorld.create(Path(folder) / "digits.world", classifier=classifier, seed=seed) as world,
    ):
        world.teach(split.X_train, split.y_train)
        before = _accuracy(world, split, known)
        rejected = int(world.observe(split.X_test[stream], ids=stream.tolist()).novel.sum())
        for row in world.audit(60):
            world.label(row.id, truth[int(row.id)])
        looked_at, named, joined = _review(world, truth)
        world.learn()
        after, learnt = _accuracy(world, split, known), _accuracy(world, split, new)
        return Turn(rejected, looked_at, tuple(named), tuple(joined), before, after, learnt, world.status().promise)


def _review(world: OpenWorld, truth: dict[int, int]) -> tuple[int, list[int], list[int]]:
    """Names each group whose images agree, or returns it to the class it is of; one that does not is split once."""
    queue, looked_at = [(view, True) for view in world.groups()], 0
    known, named, joined = set(world.classifier.classes_.tolist()), list[int](), list[int]()
    while queue:
        view, may_split = queue.pop()
        looked_at += 1
        label = _agreed(view, truth)
        if label is not None:
            world.name(view.id, label)
            (joined if label in known else named).append(label)
        elif may_split and view.size >= 2 * _SHOWN:
            halves = world.split(view.id)
            queue += [(half, False) for half in world.groups() if half.id in halves]
    return looked_at, named, joined


def _agreed(view: GroupView, truth: dict[int, int]) -> int | None:
    """The digit of four out of five images, from the centre to the edge of the group."""
    places = np.linspace(0, view.size - 1, _SHOWN).round().astype(int)
    label, count = Counter(truth[int(view.rows[place])] for place in places).most_common(1)[0]
    return label if count >= _SHOWN - 1 else None


def _accuracy(world: OpenWorld, split: OpenSplit, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> float:
    return float(np.mean(world.classifier.predict_closed(split.X_test[rows]) == split.y_test[rows]))
