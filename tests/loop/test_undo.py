"""Undo, redo and replay: after any sequence of acts the journal says what the memory says."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from offmap.loop import OpenWorld
from offmap.loop.history import History
from tests.loop.worlds import blobs, taught

SEEDS = st.integers(0, 10**6)


class Reviewer(RuleBasedStateMachine):
    """Acts at random; each decision is undone and redone at once, and sometimes left undone."""

    def __init__(self, store: str | None = None) -> None:
        super().__init__()
        self.folder, self.store = Path(tempfile.mkdtemp()), store
        self.world = taught(self.folder / "world", store=store)
        self.lessons = {1: dict(self.world.state.taught)}
        self.world.observe(blobs([0, 3, 4], 12, seed=1)[0])
        self.world.groups()

    def teardown(self) -> None:
        self.world.close()
        shutil.rmtree(self.folder)

    def decide(self, act: Callable[[], object]) -> None:
        before = self.world.state.to_bytes()
        act()
        after = self.world.state.to_bytes()
        assert self.world.undo() is not None
        assert self.world.state.to_bytes() == before
        self.world.redo()
        assert self.world.state.to_bytes() == after

    def live(self, seed: int) -> int | None:
        groups = [
            g.id for g in self.world.state.groups.values() if g.status in ("open", "skipped", "named", "discarded")
        ]
        return groups[seed % len(groups)] if groups else None

    @rule(seed=SEEDS)
    def observe(self, seed: int) -> None:
        self.world.observe(blobs([seed % 6, (seed + 2) % 6], 5, seed=seed)[0])

    @rule()
    def look(self) -> None:
        self.world.groups()

    @rule(seed=SEEDS)
    def decide_on_a_group(self, seed: int) -> None:
        group = self.live(seed)
        if group is not None:
            name = seed % 5 + 1
            self.decide(
                [
                    lambda: self.world.name(group, name),
                    lambda: self.world.discard(group),
                    lambda: self.world.skip(group),
                ][seed % 3]
            )

    @rule(one=SEEDS, other=SEEDS)
    def merge(self, one: int, other: int) -> None:
        first, second = self.live(one), self.live(other)
        if first is not None and second is not None and first != second and self.may_merge(first, second):
            self.decide(lambda: self.world.merge(first, second))

    def may_merge(self, first: int, second: int) -> bool:
        kept, gone = self.world.state.groups[first], self.world.state.groups[second]
        return kept.status != "discarded" and (None in (kept.name, gone.name) or kept.name == gone.name)

    @rule(seed=SEEDS)
    def split(self, seed: int) -> None:
        group = self.live(seed)
        if group is not None and len(self.world.state.groups[group].rows) > 1:
            self.decide(lambda: self.world.split(group))

    @rule(seed=SEEDS, row=SEEDS)
    def move_and_label(self, seed: int, row: int) -> None:
        group, rows = self.live(seed), [n for n in self.world.state.rows if n not in self.world.state.taught]
        if group is not None and rows:
            identity = self.world.state.rows[rows[row % len(rows)]].id
            self.decide(lambda: self.world.move(identity, group))
            self.decide(lambda: self.world.label(identity, seed % 5))

    @rule(n=st.integers(1, 5))
    def audit(self, n: int) -> None:
        for row in self.world.audit(n)[::2]:
            self.decide(lambda row=row: self.world.label(row.id, n % 4))  # type: ignore[misc]

    @precondition(lambda self: bool(self.world._ledger.lesson()))
    @rule()
    def learn(self) -> None:
        self.decide(self.world.learn)
        self.lessons[self.world.state.version or 0] = dict(self.world.state.taught)

    @precondition(lambda self: len(self.world.state.versions) > 1)
    @rule(seed=SEEDS)
    def rollback(self, seed: int) -> None:
        known = [version for version in self.world.state.versions if version <= (self.world.state.version or 0)]
        version = known[seed % len(known)]
        self.decide(lambda: self.world.rollback(version))
        # What a version has learnt is the same whenever it is in use.
        assert self.world.state.taught == self.lessons[version]
        assert {*self.world.state.taught.values()} == {*self.world.state.versions[version].classes}

    @rule()
    def undo(self) -> None:
        if len(self.world._ledger.history.done) > 1:
            self.world.undo()

    @rule()
    def open_again(self) -> None:
        views, before = self.world.groups(), self.world.state.to_bytes()
        self.world.close()
        self.world = OpenWorld.open(self.folder / "world", store=self.store)
        assert self.world.state.to_bytes() == before
        # What was kept of groups from act to act is what a new process finds.
        assert self.world.groups() == views

    @invariant()
    def replay_equals_live(self) -> None:
        replayed = History.of(self.world._ledger.journal.entries())
        assert replayed.state.to_bytes() == self.world.state.to_bytes()
        assert (replayed.next_group, replayed.next_version) == self.counters()

    @invariant()
    def rows_have_the_verdict_of_a_version_that_stands(self) -> None:
        assert self.world.state.outdated() == []

    @invariant()
    def a_row_is_in_its_group_and_in_no_other(self) -> None:
        state = self.world.state
        places = [(row, group.id) for group in state.groups.values() for row in group.rows]
        assert sorted(places) == sorted((n, row.group) for n, row in state.rows.items() if row.group is not None)

    def counters(self) -> tuple[int, int]:
        history = self.world._ledger.history
        return history.next_group, history.next_version


def test_any_sequence_of_acts_in_a_folder() -> None:
    run_state_machine_as_test(Reviewer, settings=settings(max_examples=12, stateful_step_count=15))


def test_any_sequence_of_acts_in_a_database(postgres: str) -> None:
    run = settings(max_examples=5, stateful_step_count=12)
    run_state_machine_as_test(lambda: Reviewer(postgres), settings=run)  # type: ignore[arg-type]  # it only calls it


def test_rows_that_came_after_an_undone_version_are_assessed_again(tmp_path: Path) -> None:
    with taught(tmp_path / "undone") as undone, taught(tmp_path / "rolled-back") as rolled_back:
        for world in (undone, rolled_back):
            world.observe(blobs([3], 15, seed=1)[0])
            world.name(world.groups()[0].id, 3)
            world.learn()
            later = world.observe(blobs([3], 15, seed=2)[0], ids=[f"later {row}" for row in range(15)])
            assert later.novel.mean() < 0.5
        learnt = undone.state.to_bytes()
        undone.undo()
        rolled_back.rollback(1)
        for world in (undone, rolled_back):
            rows = [world.state.rows[world.state.numbers[f"later {row}"]] for row in range(15)]
            assert {row.version for row in rows} == {1}
            assert {row.closest for row in rows} <= {0, 1, 2}
            assert all(row.waits for row in rows)
        undone.redo()
        assert undone.state.to_bytes() == learnt
    with OpenWorld.open(tmp_path / "undone") as again:
        assert again.state.to_bytes() == learnt


def test_after_a_redo_rows_that_came_before_it_are_assessed_by_its_version(tmp_path: Path) -> None:
    with taught(tmp_path / "w") as world:
        world.observe(blobs([3], 15, seed=1)[0])
        world.name(world.groups()[0].id, 3)
        world.learn()
        world.undo()
        world.observe(blobs([3], 15, seed=2)[0], ids=[f"later {row}" for row in range(15)])
        world.redo()
        rows = [world.state.rows[world.state.numbers[f"later {row}"]] for row in range(15)]
        assert {row.version for row in rows} == {2}
        assert sum(row.closest == 3 for row in rows) > 10


def test_ids_of_undone_groups_and_versions_are_not_used_again(tmp_path: Path) -> None:
    world = taught(tmp_path / "world")
    world.observe(blobs([3], 20, seed=1)[0])
    group = world.groups()[0].id
    first = world.split(group)
    world.undo()
    assert set(world.split(group)).isdisjoint(first)
    world.name(world.groups()[0].id, 3)
    version = world.learn()
    world.undo()
    assert world.learn() == version + 1
    world.close()


def test_the_same_acts_give_the_same_state_and_the_same_model(tmp_path: Path) -> None:
    rows, _ = blobs([0, 3], 20, seed=1)
    novelties = []
    for folder in ("one", "two"):
        with taught(tmp_path / folder) as world:
            world.observe(rows)
            world.name(world.groups()[0].id, 3)
            world.learn()
            state = world.state.to_bytes()
        with OpenWorld.open(tmp_path / folder) as again:
            assert again.state.to_bytes() == state
            assert np.isin(3, again.classifier.classes_)
            novelties.append(again.classifier.novelty(rows).tobytes())
    assert novelties[0] == novelties[1]
