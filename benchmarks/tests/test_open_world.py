"""The tables of the open-world loop: learners in stages, the simulated person, and what a round measures."""

from collections.abc import Iterator
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestCentroid

from offmap.loop import GroupView
from offmap.openset import AnalyticClassifier, ANSClassifier
from offmap_bench import class_learners, intent_stream
from offmap_bench.class_learners import Analytic, FineTuned, Heads, NearestMean, StreamingLDA
from offmap_bench.clusterings import Clustering, Dense, Library, Linked, Plain
from offmap_bench.reviewer import Reviewer
from offmap_bench.tables import open_world_discovery as discovery
from offmap_bench.tables import open_world_figures as figures
from offmap_bench.tables import open_world_incremental as stages
from offmap_bench.tables import open_world_loop as loop

Array = NDArray[Any]
CLASSES, WIDTH = 12, 24
# Few random features, so that the tests are quick.
NARROW = partial(AnalyticClassifier, width=200)


def rows_of(split: str) -> tuple[Array, Array]:
    """Unit vectors around one direction per class, as sentence embeddings are."""
    rng = np.random.default_rng({"train": 1, "test": 2}[split])
    codes = np.repeat(np.arange(CLASSES), {"train": 30, "test": 20}[split])
    X = np.random.default_rng(0).normal(size=(CLASSES, WIDTH))[codes] + 0.45 * rng.normal(size=(len(codes), WIDTH))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), np.array(
        [f"c{code:02d}" for code in codes]
    )


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Puts rows that are made up into the place of embedded intents."""
    for module in (stages, intent_stream, discovery):
        monkeypatch.setattr(module, "embedded", lambda name, split: rows_of(split))
    monkeypatch.setattr(intent_stream, "ROWS_PER_CLASS", {"BANKING": 28})
    monkeypatch.setattr(loop, "AnalyticClassifier", NARROW)
    caches = (intent_stream.stream, loop.rounds, stages.refitted)
    for kept in caches:
        kept.cache_clear()
    yield
    for kept in caches:
        kept.cache_clear()


def in_stages(learner: Any, X: Array, y: Array) -> Any:
    for labels in np.split(np.unique(y), 3):
        learner.learn(X[np.isin(y, labels)], y[np.isin(y, labels)])
    return learner


def test_learners_in_stages_equal_scikit_learns_on_all_rows() -> None:
    (X, y), (rows, _) = rows_of("train"), rows_of("test")
    mean = NearestCentroid().fit(X, y)
    assert (in_stages(NearestMean(), X, y).predict(rows) == mean.predict(rows)).all()
    discriminant = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1, priors=np.full(CLASSES, 1 / CLASSES))
    agree = in_stages(StreamingLDA(), X, y).predict(rows) == discriminant.fit(X, y).predict(rows)
    # scikit-learn scales the features before it shrinks the covariance, ours does not.
    assert np.mean(agree) > 0.98


def test_ridge_in_stages_equals_its_refit_and_fine_tuning_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_learners, "AnalyticClassifier", NARROW)
    (X, y), (rows, truth) = rows_of("train"), rows_of("test")
    agree = in_stages(Analytic(), X, y).predict(rows) == in_stages(Analytic(refit=True), X, y).predict(rows)
    assert np.mean(agree) > 0.98
    tuned = in_stages(FineTuned(classes=np.unique(y)), X, y)
    first = np.isin(truth, np.unique(y)[:4])
    assert np.mean(tuned.predict(rows[first]) == truth[first]) < 0.5


def test_heads_learn_in_stages_and_label_as_well_as_ridge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_learners, "ANSClassifier", partial(ANSClassifier, steps=10, head_hidden=(8,)))
    (X, y), (rows, truth) = rows_of("train"), rows_of("test")
    assert np.mean(in_stages(Heads(), X, y).predict(rows) == truth) > 0.95


@pytest.mark.usefixtures("made_up")
def test_a_round_is_measured_as_the_whole_loop_is() -> None:
    quick = loop.Loop(audit=10, groups=8)
    whole = loop.measure(quick, "BANKING α = 0.1", seed=0)
    last = loop.measure_round(quick, "BANKING α = 0.1, round 6", seed=0)
    assert {name: whole[name] for name in ("accuracy", "decisions", "rows read")} == {
        name: last[name] for name in ("accuracy", "decisions", "rows read")
    }
    assert last["rows read"] <= last["decisions"]
    first = loop.measure_round(quick, "BANKING α = 0.1, round 1", seed=0)
    assert first["decisions"] < last["decisions"]


@pytest.mark.usefixtures("made_up")
def test_stages_are_measured_on_the_right_rows() -> None:
    found = stages.measure(NearestMean(), "BANKING 6 + 3 × 2", seed=0)
    (X, y), (rows, truth) = rows_of("train"), rows_of("test")
    order = np.random.RandomState(0).permutation(np.unique(y))
    base, of_base = np.isin(y, order[:6]), np.isin(truth, order[:6])
    alone = np.mean(NearestMean().learn(X[base], y[base]).predict(rows[of_base]) == truth[of_base])
    right = NearestMean().learn(X, y).predict(rows) == truth
    expected = {"all": right.mean(), "base": right[of_base].mean(), "new": right[~of_base].mean()}
    expected["drop"] = alone - expected["base"]
    refit = Analytic().learn(X, y).predict(rows) == truth
    expected["below refit"] = refit[of_base].mean() - expected["base"]
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert set(found) == set(stages.METRICS)


@pytest.mark.usefixtures("made_up")
def test_the_stream_has_all_rows_that_were_not_taught_and_a_quarter_of_the_classes_is_known() -> None:
    data = intent_stream.stream("BANKING", 0)
    known, counts = np.unique(data.y_known, return_counts=True)
    assert (len(known), set(counts)) == (3, {21})
    taught, streamed = ({row.tobytes() for row in part} for part in (data.X_known, data.X))
    assert taught.isdisjoint(streamed)
    assert len(taught) + len(streamed) == 28 * CLASSES
    assert {label: int(np.sum(data.y == label)) for label in known} == dict.fromkeys(known, 7)
    assert not (intent_stream.stream("BANKING", 1).y_known == data.y_known).all()


@pytest.mark.usefixtures("made_up")
def test_false_alarms_are_weighted_by_the_shares_of_the_classes_in_the_stream() -> None:
    data = intent_stream.stream("BANKING", 0)
    model = loop.classifier(0.1, 0).fit(data.X_known, data.y_known)
    found, known = loop.scores(model, data), np.unique(data.y_known)
    shares = {label: np.sum(data.y == label) for label in known}
    rows = {"false alarms": (data.X_fresh, data.y_fresh), "false alarms, test split": (data.X_test, data.y_test)}
    for metric, (X, y) in rows.items():
        answers = model.predict(X)
        by_class = {label: np.mean(answers[y == label] == model.unknown_label_) for label in known}
        expected = sum(by_class[label] * shares[label] for label in known) / sum(shares.values())
        assert found[metric] == pytest.approx(expected)
    assert found["accuracy"] <= 3 / CLASSES
    assert found["novel rows found"] > 0.5


@pytest.mark.usefixtures("made_up")
def test_a_person_teaches_the_classes_within_the_promise() -> None:
    found = loop.measure(loop.Loop(audit=20, groups=12), "BANKING α = 0.1", seed=0)
    assert set(found) == set(loop.METRICS)
    assert found["classes learnt"] >= 10
    assert found["accuracy"] > 0.8
    assert found["base accuracy"] > 0.9
    assert found["false alarms"] < 0.25
    assert found["decisions"] <= 6 * (20 + 2 * 12)
    assert found["random labels, as many rows"] > 0.5
    everything = loop.measure(loop.Loop(audit=0, groups=0), "BANKING α = 0.1", seed=0)
    assert everything["accuracy"] > 0.95


def test_a_group_counts_for_the_class_that_makes_most_rows_right() -> None:
    rng = np.random.default_rng(0)
    truth, codes = rng.integers(0, 4, 60), rng.integers(0, 5, 60)
    best = max(np.mean(np.array(order)[truth] == codes) for order in permutations(range(5), 4))
    assert np.mean(discovery.matched(truth, codes)) == pytest.approx(best)


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize("method", [Plain(), Linked(), Dense(least=5), Library(given=True), Library(given=False)])
def test_classes_that_stand_apart_are_discovered(method: Clustering) -> None:
    found = discovery.measure(method, "BANKING 25 %", seed=0)
    assert set(found) == set(discovery.METRICS)
    assert found["accuracy"] > (0.9 if isinstance(method, Library) else 0.6)
    assert found["accuracy"] == pytest.approx(0.25 * found["known"] + 0.75 * found["novel"])
    assert found["off"] == pytest.approx(abs(found["groups"] - CLASSES) / CLASSES)
    assert found["off"] <= 0.34


@pytest.mark.usefixtures("made_up")
def test_the_map_shows_the_groups_of_the_first_round(tmp_path: Path) -> None:
    _, groups = figures.first_groups("BANKING")
    assert len(groups) >= 3
    figures.draw_map(tmp_path / "map.png", "cpu")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


class World:
    """Groups of a person's own making, and what the person does to them."""

    def __init__(self, groups: dict[int, list[int]]) -> None:
        self.sizes, self.done = groups, list[tuple[Any, ...]]()

    def groups(self) -> list[GroupView]:
        return [
            GroupView(group, len(rows), tuple(rows), (), "x", False, 0.5, "open", None, 0)
            for group, rows in self.sizes.items()
        ]

    def name(self, group: int, label: str) -> None:
        self.done.append(("name", group, label))

    def skip(self, group: int) -> None:
        self.done.append(("skip", group))

    def split(self, group: int) -> tuple[int, int]:
        rows = self.sizes.pop(group)
        self.sizes |= {10 * group: rows[::2], 10 * group + 1: rows[1::2]}
        self.done.append(("split", group))
        return 10 * group, 10 * group + 1


def test_the_person_names_what_agrees_splits_what_does_not_once_and_counts_what_it_cost() -> None:
    truth = {row: "ab"[row % 2] for row in range(40)} | {row: "c" for row in range(40, 50)}
    world: Any = World({1: list(range(40, 50)), 2: list(range(20)), 3: [0, 1, 2]})
    person = Reviewer(truth)
    person.review(world, most=10)
    assert world.done == [("name", 1, "c"), ("split", 2), ("name", 20, "a"), ("name", 21, "b"), ("skip", 3)]
    assert person.decisions == 5
    assert person.purity == [1.0, 1.0, 1.0]
    assert {40, 49, 0, 19} <= person.read
    assert len(person.read) <= 5 * 4 + 3
    person.review(world, most=1)
    assert person.decisions == 6
