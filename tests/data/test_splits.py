"""Open-set splits: the draw of known classes as in published code, and rows held out by class."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offmap.data import DataNotFound, hold_out_classes, known_classes, load

REPEATABLE = settings(deadline=None, derandomize=True)


def drawn_by_the_common_code(labels: list[str], ratio: float, seed: int) -> list[str]:
    state = np.random.get_state()
    try:
        np.random.seed(seed)
        return list(np.random.choice(sorted(set(labels)), round(len(set(labels)) * ratio), replace=False))
    finally:
        np.random.set_state(state)


@REPEATABLE
@given(
    st.lists(st.text("abcdef", min_size=1, max_size=3), min_size=2),
    st.sampled_from([0.25, 0.5, 0.75]),
    st.integers(0, 9),
)
def test_known_classes_are_those_of_the_common_code(labels: list[str], ratio: float, seed: int) -> None:
    expected = drawn_by_the_common_code(labels, ratio, seed)
    if not expected:
        with pytest.raises(ValueError, match="large enough to keep one"):
            known_classes(labels, ratio, seed)
        return
    assert known_classes(labels, ratio, seed).tolist() == expected


def test_global_random_state_is_left_alone() -> None:
    np.random.seed(5)
    expected = np.random.random()
    np.random.seed(5)
    known_classes(range(10), 0.5, seed=3)
    hold_out_classes(np.eye(8), np.arange(8) // 4, [0])
    assert np.random.random() == expected


@pytest.mark.parametrize("ratio", [0.0, -0.5, 1.5, 0.01, float("nan")])
def test_ratio_must_keep_some_classes(ratio: float) -> None:
    with pytest.raises(ValueError, match="ratio must be in"):
        known_classes(["a", "b"], ratio, seed=0)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "first", "counts"),
    [
        ("banking", ["pending_top_up", "why_verify_identity", "top_up_failed"], [19, 38, 58]),
        ("clinc", ["spelling", "jump_start", "date"], [38, 75, 112]),
        ("stackoverflow", ["visual-studio", "apache", "wordpress"], [5, 10, 15]),
    ],
)
def test_known_classes_of_the_intent_sets(name: str, first: list[str], counts: list[int]) -> None:
    try:
        labels = load(name, "train").y
    except DataNotFound as error:
        pytest.skip(str(error))
    assert labels is not None
    drawn = [known_classes(labels, ratio, seed=0) for ratio in (0.25, 0.5, 0.75)]
    assert [len(classes) for classes in drawn] == counts
    assert all(classes[:3].tolist() == first for classes in drawn)


@REPEATABLE
@given(st.integers(0, 5), st.integers(4, 12), st.sets(st.sampled_from("abc"), min_size=1))
def test_hold_out_classes_keeps_every_row_once(seed: int, per_class: int, known: set[str]) -> None:
    y = np.random.default_rng(seed).permutation(np.repeat(list("abc"), per_class))
    X = np.arange(len(y))[:, None]
    split = hold_out_classes(X, y, sorted(known), test_size=0.5, seed=seed)
    assert sorted([*split.X_train[:, 0], *split.X_test[:, 0]]) == list(range(len(y)))
    assert set(split.y_train) == known
    assert np.array_equal(split.y_train, y[split.X_train[:, 0]])
    assert np.array_equal(split.y_test, y[split.X_test[:, 0]])
    assert split.unknown.tolist() == [label not in known for label in split.y_test]
    for label in known:
        assert abs(np.sum(split.y_train == label) - per_class / 2) <= 1


def test_hold_out_classes_takes_texts_and_the_seed_decides() -> None:
    texts, y = [f"text {i}" for i in range(40)], np.repeat([0, 1], 20)
    first, again, other = (hold_out_classes(texts, y, [1], seed=seed) for seed in (0, 0, 1))
    assert isinstance(first.X_train[0], str)
    assert first.X_train.tolist() == again.X_train.tolist() != other.X_train.tolist()
    assert len(first.X_train) == 14


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": np.zeros((0, 2))}, "X must have at least one row"),
        ({"y": [0, 1]}, r"y must have shape \(8,\)"),
        ({"known": [0, 7]}, r"known must be one or more of the labels of y, not \[0, 7\]"),
        ({"known": []}, "known must be one or more"),
        ({"test_size": 0.0}, "test_size must be in"),
        ({"test_size": 1.0}, "test_size must be in"),
    ],
)
def test_hold_out_classes_refuses(changed: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"X": np.zeros((8, 2)), "y": np.repeat([0, 1], 4), "known": [0]}
    with pytest.raises(ValueError, match=message):
        hold_out_classes(**(arguments | changed))  # type: ignore[arg-type]
