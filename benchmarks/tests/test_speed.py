"""The speed tables: the contenders do the same work, and the clock is read as it should be."""

import statistics
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch

from offmap.density import VAEDetector
from offmap.openset import MSPClassifier
from offmap.random_state import local_seed
from offmap.train import descend
from offmap_bench import timing
from offmap_bench.run import run
from offmap_bench.tables import speed
from offmap_bench.tables.speed import Learner, Training, contenders, measure_training, take_turns

WORKLOADS = [Training(shape=(20,), batches=3, batch_size=8), Training(shape=(1, 16, 16), batches=2, batch_size=4)]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The learner and the number of rows of each step that is taken."""
    taken: list[tuple[int, int]] = []
    terms = Learner.terms

    def counting(self: Learner, batch: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
        taken.append((id(self), len(batch[0])))
        return terms(self, batch)

    monkeypatch.setattr(Learner, "terms", counting)
    return taken


@pytest.mark.parametrize("workload", WORKLOADS, ids=["perceptrons", "convolutions"])
def test_every_contender_takes_the_same_steps_with_a_network_of_its_own(
    workload: Training, steps: list[tuple[int, int]]
) -> None:
    learners = []
    for runner in contenders(workload).values():
        steps.clear()
        runner()
        assert [rows for _, rows in steps] == [workload.batch_size] * workload.batches
        learners.append({learner for learner, _ in steps})
    assert len(set(chain.from_iterable(learners))) == len(learners) == 3


def test_the_plain_step_learns_what_the_toolkits_step_learns() -> None:
    network, X = WORKLOADS[0].network(), WORKLOADS[0].data()
    plain, ours = Learner(network), Learner(network)
    for learner, step in ((plain, plain.step), (ours, lambda rows: descend(ours.optimizer, ours.terms)((rows,)))):
        with local_seed(0):
            for _ in range(3):
                step(X)
        assert not torch.equal(next(learner.network.parameters()), next(network.parameters()))
    for one, other in zip(plain.network.parameters(), ours.network.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_runners_take_turns_and_change_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    now, calls = [0.0], ""

    def runner(name: str, seconds: float) -> Callable[[], None]:
        def go() -> None:
            nonlocal calls
            calls += name
            now[0] += seconds

        return go

    monkeypatch.setattr(timing, "perf_counter", lambda: now[0])
    seconds = take_turns({"a": runner("a", 1), "b": runner("b", 2), "c": runner("c", 4)}, turns=3)
    assert seconds == {"a": [1, 1, 1], "b": [2, 2, 2], "c": [4, 4, 4]}
    assert calls == "abc" + "abc" + "bca" + "cab"


def test_rates_and_ratios_come_from_the_medians(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"ours": [1.0, 2.0, 8.0], "DataLoader": [2.0, 4.0, 9.0], "limit": [0.5, 2.0, 8.0]}
    monkeypatch.setattr(speed, "take_turns", lambda runners, turns: seconds)
    found = measure_training(WORKLOADS[0], "batches", seed=0)
    assert found == {"ours": 12, "DataLoader": 6, "limit": 12, "ours / limit": 1, "ours / DataLoader": 2}
    assert statistics.median([2 / 1, 4 / 2, 9 / 8]) == 2


def test_measuring_leaves_the_random_state_alone() -> None:
    before = torch.get_rng_state()
    found = measure_training(Training(shape=(3,), batches=2, batch_size=4, turns=2), "batches", seed=0)
    assert set(found) == set(speed.TRAINING.metrics)
    assert all(np.isfinite(value) and value > 0 for value in found.values())
    assert torch.equal(torch.get_rng_state(), before)


def test_a_start_is_timed_and_a_failing_one_is_an_error(tmp_path: Path) -> None:
    quick = run(speed.START, results=tmp_path, rows=["python alone"], seeds=[0])[0].runs[0].metrics["seconds"]
    slow = speed.measure_start("import time; time.sleep(0.3)", "warm", 0)["seconds"]
    assert quick is not None
    assert slow > 0.3
    assert slow > quick
    with pytest.raises(Exception, match="non-zero exit status"):
        speed.measure_start("raise SystemExit(3)", "warm", 0)


@pytest.mark.parametrize("row", speed.START.rows)
def test_each_start_of_the_table_runs(row: str) -> None:
    assert speed.measure_start(speed.START.rows[row], "warm", 0)["seconds"] > 0


@pytest.mark.parametrize("method", [VAEDetector(epochs=1), MSPClassifier(epochs=1)], ids=["VAE", "MSP"])
def test_scoring_is_measured(method: VAEDetector | MSPClassifier) -> None:
    found = speed.score_alone(method, rows=5000, features=3, seed=0)
    assert set(found) == set(speed.SCORING.metrics)
    assert found["rows / s"] > 0
    assert not found["MiB above the input"] < 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say how much memory was held")
def test_the_peak_of_memory_is_what_the_system_says() -> None:
    import resource

    # The system's own number may go back to the process that started this one, and is then higher.
    assert 32 < speed.peak_mib() <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 + 8


def test_scoring_has_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(speed.SIZES, "few", (3000, 2))
    found = speed.measure_scoring(VAEDetector(epochs=1), "few", seed=0)
    assert found["rows / s"] > 0
