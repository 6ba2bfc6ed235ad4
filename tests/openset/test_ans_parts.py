"""What the parts of the negatives of ANS do: each must change answers."""

import numpy as np
from sklearn.datasets import load_digits

from offmap.data import hold_out_classes
from offmap.openset import ANSClassifier

DIGITS = load_digits()
SPLIT = hold_out_classes(DIGITS.images / 16, DIGITS.target, known=list(range(7)), test_size=0.4)


def test_far_negatives_reject_less_than_near_ones() -> None:
    """What the distance sets: the own rule's false alarms and misses move in opposite directions."""
    rejected = []
    for factor in (0.6, 4.0):
        model = ANSClassifier(rule="own", projection=True, radius_factor=factor, steps=100, random_state=0)
        answers = model.fit(SPLIT.X_train, SPLIT.y_train).predict(SPLIT.X_test)
        rejected.append([np.mean(answers[SPLIT.unknown] == -1), np.mean(answers[~SPLIT.unknown] == -1)])
    (near_found, near_alarms), (far_found, far_alarms) = rejected
    assert near_found > far_found + 0.1
    assert near_alarms > far_alarms + 0.02


def test_parts_of_the_negatives_answer_differently() -> None:
    """Noise, projection and ascent must each change answers: once the first two were the same in every run."""
    parts = (
        {"projection": False, "ascent_steps": 0},
        {"projection": True, "ascent_steps": 0},
        {"projection": True, "ascent_steps": 1},
    )
    noise, projected, ascended = (
        ANSClassifier(random_state=0, steps=60, radius_factor=1.0, **part)  # type: ignore[arg-type]
        .fit(SPLIT.X_train, SPLIT.y_train)
        .novelty(SPLIT.X_test)
        for part in parts
    )
    assert np.mean(np.abs(noise - projected)) > 0.1
    assert np.mean(np.abs(projected - ascended)) > 0.1
