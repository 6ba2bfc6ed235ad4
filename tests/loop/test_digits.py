"""The whole loop on digits: a simulated reviewer finds, names and teaches 7, 8 and 9."""

from pathlib import Path

import numpy as np
import pytest

from offmap.data import OpenSplit, hold_out_classes, load
from offmap.loop import GroupView, OpenWorld
from offmap.openset import AnalyticClassifier


@pytest.fixture(scope="module")
def split() -> OpenSplit:
    digits = load("digits")
    return hold_out_classes(digits.X, np.asarray(digits.y), known=list(range(7)), test_size=0.6, seed=1)


def agreed(group: GroupView, truth: dict[int, int]) -> int | None:
    """What a person says who sees five rows: a name if four of them agree."""
    shown = [truth[int(row)] for row in (*group.rows[:3], *group.rows[-2:])]
    return next((label for label in set(shown) if shown.count(label) >= 4), None)


def test_three_digits_are_learnt_and_the_known_ones_kept(split: OpenSplit, tmp_path: Path) -> None:
    order = np.random.default_rng(0).permutation(len(split.y_test))
    stream, test = order[:800], order[800:]
    truth = {int(row): int(split.y_test[row]) for row in stream}
    classifier = AnalyticClassifier(width=500, alpha=0.05, calibration=0.3, random_state=0)
    with OpenWorld.create(tmp_path / "digits", classifier=classifier) as world:
        world.teach(split.X_train, split.y_train)
        known = test[~split.unknown[test]]
        before = np.mean(world.classifier.predict_closed(split.X_test[known]) == split.y_test[known])
        decisions = 0
        for part in np.array_split(stream, 2):
            world.observe(split.X_test[part], ids=part.tolist())
            for row in world.audit(60):
                world.label(row.id, truth[int(row.id)])
            for group in world.groups():
                decisions += 1
                if (label := agreed(group, truth)) is not None:
                    world.name(group.id, label)
            world.learn()
        answers, new = world.classifier.predict(split.X_test[test]), split.unknown[test]
        status = world.status()
    assert status.classes == 10
    assert decisions <= 30
    right = answers == split.y_test[test]
    assert right[new].mean() > 0.65
    assert right[~new].mean() > before - 0.06
    alarms = np.mean(answers[~new] == -1)
    assert alarms < 0.05 + 2.5 * np.sqrt(0.05 * 0.95 * (1 / 120 + 1 / len(known)))
    assert status.promise_holds
    assert status.promise.startswith("about 5.0% [")
