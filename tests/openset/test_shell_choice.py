"""The distance of the negatives: sub-known and sub-open splits, and the choice on them."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from offmap.data import hold_out_classes
from offmap.openset import ANSClassifier
from offmap.openset.shell_choice import DEFAULT_FACTOR, FACTORS, REJECTED, SubSplit, choose_factor, sub_splits

DIGITS = load_digits()
SPLIT = hold_out_classes(DIGITS.images / 16, DIGITS.target, known=list(range(7)), test_size=0.4)


@pytest.mark.parametrize("classes", [3, 4, 7, 60])
def test_sub_open_classes_are_never_trained_on_and_test_rows_are_held_out(classes: int) -> None:
    y = np.random.default_rng(0).permutation(np.arange(20 * classes) % classes)
    for split in sub_splits(y, np.random.default_rng(1)):
        assert not set(split.train) & set(split.test)
        trained, is_open = set(y[split.train]), split.truth == REJECTED
        assert not trained & set(y[split.test][is_open])
        assert trained == set(y[split.test][~is_open])
        assert 2 <= len(trained) <= 10
        for code in np.unique(split.codes):
            (name,) = set(y[split.train][split.codes == code])
            assert set(y[split.test][split.truth == code]) == {name}


def test_the_factor_with_the_best_answers_is_chosen() -> None:
    y = np.arange(120) % 6
    rng = np.random.default_rng(0)

    def answers(split: SubSplit) -> np.ndarray:
        wrong = np.full_like(split.truth, REJECTED)
        return np.stack([wrong, split.truth, wrong])

    assert choose_factor(answers, y, rng) == FACTORS[1]
    assert choose_factor(lambda split: answers(split)[[1, 0, 2]], y, rng) == FACTORS[0]


@pytest.mark.parametrize("y", [np.arange(20) % 2, np.arange(5)], ids=["two classes", "one row per class"])
def test_without_a_split_the_default_is_taken(y: np.ndarray) -> None:
    def refuse(split: SubSplit) -> np.ndarray:
        raise AssertionError(split)

    assert choose_factor(refuse, y, np.random.default_rng(0)) == DEFAULT_FACTOR


def test_a_given_radius_or_factor_is_not_chosen_anew() -> None:
    given, fixed, free = ANSClassifier(radius_factor=1.3), ANSClassifier(radius=3.0), ANSClassifier()
    for model in (given, fixed, free):
        model.set_params(steps=1, random_state=0).fit(SPLIT.X_train, SPLIT.y_train)
    assert given.radius_factor_ == 1.3
    assert fixed.radius_factor_ == 1
    assert free.radius_factor_ in FACTORS


def test_far_negatives_reject_less_than_near_ones() -> None:
    """What the choice is about: the own rule's false alarms and misses move in opposite directions."""
    rejected = []
    for factor in (0.6, 4.0):
        model = ANSClassifier(rule="own", radius_factor=factor, steps=100, random_state=0)
        answers = model.fit(SPLIT.X_train, SPLIT.y_train).predict(SPLIT.X_test)
        rejected.append([np.mean(answers[SPLIT.unknown] == -1), np.mean(answers[~SPLIT.unknown] == -1)])
    (near_found, near_alarms), (far_found, far_alarms) = rejected
    assert near_found > far_found + 0.1
    assert near_alarms > far_alarms + 0.02


def test_parts_of_the_negatives_answer_differently() -> None:
    """Noise, projection and ascent must each change answers: once the first two were the same in every run."""
    parts = {
        "noise": {"projection": False, "ascent_steps": 0},
        "projection": {"ascent_steps": 0},
        "ascent": {},
    }
    novelty = [
        ANSClassifier(random_state=0, steps=60, radius_factor=FACTORS[0], **change)  # type: ignore[arg-type]
        .fit(SPLIT.X_train, SPLIT.y_train)
        .novelty(SPLIT.X_test)
        for change in parts.values()
    ]
    for before, after in ((0, 1), (1, 2)):
        assert np.mean(np.abs(novelty[before] - novelty[after])) > 0.1
