"""Training on several processes: equal to that of one, whatever the shares; all stop if one fails, and say why."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer, SparseAdam

from offmap.calibration.split import hold_out
from offmap.checkpoint import Checkpoint
from offmap.collaborative import ClosedFormDetector
from offmap.density import NearestNeighborDetector, VAEDetector
from offmap.distributed import Processes
from offmap.errors import WorkFailed
from offmap.openset import ANSClassifier
from offmap.random_state import local_seed
from offmap.train import Batch, Batches, TrainingError, descend, train
from tests.scale import processes as several
from tests.training_runs import flat, squares

ROWS = torch.linspace(-1, 1, 54).reshape(27, 2)
X = np.random.default_rng(0).normal(size=(601, 4))


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with several.pool(3) as processes:
        yield processes


def results(pool: ProcessPoolExecutor, folder: Path, count: int, work: several.Work, *arguments: Any) -> list[Any]:
    return [each.result(timeout=120) for each in several.start(pool, count, folder, work, *arguments)]


def fitted(_: Processes, patience: int | None, clip: float | None) -> tuple[np.ndarray, dict[str, list[float]]]:
    """A small network after training on batches that no number of processes divides evenly."""
    with local_seed(0):
        network = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = Adam(network.parameters(), lr=0.05)
        history = train(
            descend(optimizer, squares(network), clip),
            Batches((ROWS,), size=8),
            epochs=12,
            state={"network": network, "optimizer": optimizer},
            validate=None if patience is None else lambda: float((network(ROWS) - 0.3).square().mean()),
            patience=patience,
        )
    return flat(network).numpy(), history


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(("patience", "clip"), [(None, None), (2, 0.5)])
def test_training_equals_that_of_one_process(
    pool: ProcessPoolExecutor, tmp_path: Path, count: int, patience: int | None, clip: float | None
) -> None:
    weights, history = several.alone(fitted, patience, clip)
    found = results(pool, tmp_path, count, fitted, patience, clip)
    for own, told in found:
        np.testing.assert_allclose(own, weights, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(own, found[0][0])
        assert told.keys() == history.keys()
        for name in history:
            np.testing.assert_allclose(told[name], history[name], rtol=1e-4)
    assert patience is None or len(history["fit"]) < 12


def embedded(_: Processes) -> np.ndarray:
    """Embeddings after sparse steps: a process has gradients of the entities of its own rows only."""
    entities, levels = torch.arange(27) % 5, torch.linspace(-1, 1, 27)
    with local_seed(0):
        vectors = nn.Embedding(5, 3, sparse=True)
        optimizer = SparseAdam(list(vectors.parameters()), lr=0.05)

        def terms(batch: Batch) -> dict[str, Tensor]:
            return {"loss": (vectors(batch[0]).sum(dim=1) - batch[1]).square().mean()}

        train(descend(optimizer, terms), Batches((entities, levels), size=7), epochs=5, state={"vectors": vectors})
    return flat(vectors).numpy()


def test_sparse_gradients_are_averaged_too(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    one, other = results(pool, tmp_path, 2, embedded)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one, several.alone(embedded), rtol=1e-4, atol=1e-6)


def normalised(_: Processes) -> tuple[np.ndarray, np.ndarray]:
    """Running statistics of batch normalisation, and what noise a step drew."""
    drawn = []
    with local_seed(0):
        network = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1))
        optimizer = SGD(network.parameters(), lr=0.01)

        def terms(batch: Batch) -> dict[str, Tensor]:
            drawn.append(float(torch.randn(len(batch[0]))[0]))
            return {"loss": network(batch[0]).square().mean()}

        train(descend(optimizer, terms), Batches((ROWS,), size=9), epochs=3, state={"network": network})
    return flat(network).numpy(), np.array(drawn)


def test_statistics_are_averaged_and_each_process_draws_its_own_noise(
    pool: ProcessPoolExecutor, tmp_path: Path
) -> None:
    (one, noise), (other, other_noise) = results(pool, tmp_path, 2, normalised)
    np.testing.assert_array_equal(one, other)
    assert len(set(noise) | set(other_noise)) == len(noise) + len(other_noise)
    np.testing.assert_array_equal(noise, results(pool, tmp_path, 2, normalised)[0][1])


def checkpointed(_: Processes, path: Path, stop_at: int) -> np.ndarray:
    """Weights after training with noise; a run that stops on the way leaves a checkpoint."""
    steps = iter(range(1, 10_000))
    with local_seed(0):
        network = nn.Linear(2, 1)
        optimizer = Adam(network.parameters(), lr=0.05)

        def terms(batch: Batch) -> dict[str, Tensor]:
            if next(steps) == stop_at:
                raise ValueError("stopped")
            return {"loss": (network(batch[0]) + torch.randn(len(batch[0]), 1)).square().mean()}

        state: dict[str, nn.Module | Optimizer] = {"network": network, "optimizer": optimizer}
        batches, file = Batches((ROWS,), size=9), Checkpoint(path, "run")
        train(descend(optimizer, terms), batches, epochs=6, state=state, checkpoint=file)
    return flat(network).numpy()


def test_a_stopped_run_is_resumed_by_all_processes(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    whole, _ = results(pool, tmp_path, 2, checkpointed, tmp_path / "whole", 0)
    for each in several.start(pool, 2, tmp_path, checkpointed, tmp_path / "part", 11):
        with pytest.raises((ValueError, WorkFailed), match="stopped"):
            each.result(timeout=60)
    assert (tmp_path / "part").exists()
    resumed = results(pool, tmp_path, 2, checkpointed, tmp_path / "part", 0)
    for weights in resumed:
        np.testing.assert_array_equal(weights, whole)
    assert not (tmp_path / "part").exists()


def vae(_: Processes) -> VAEDetector:
    return VAEDetector(hidden=(16,), epochs=15, patience=3, batch_size=37, random_state=0).fit(X)


def test_held_out_rows_are_gathered_once_each(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    one, other = results(pool, tmp_path, 2, vae)
    held_out = hold_out(np.zeros(len(X), dtype=np.int64), 0.1, np.random.default_rng(0)).held_out
    np.testing.assert_array_equal(one.calibration_novelty_, np.sort(one.novelty(X[held_out])))
    np.testing.assert_array_equal(one.calibration_novelty_, other.calibration_novelty_)
    assert one.history_ == other.history_


def test_an_autoencoder_learns_as_well_as_alone(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    together, *_ = results(pool, tmp_path, 2, vae)
    single = several.alone(vae)
    assert together.novelty(X).mean() == pytest.approx(single.novelty(X).mean(), rel=0.02)
    assert np.corrcoef(together.novelty(X), single.novelty(X))[0, 1] > 0.95


def heads(_: Processes) -> np.ndarray:
    y = (X[:, 0] > 0).astype(int)
    return ANSClassifier(adapter_epochs=1, head_hidden=(8,), steps=5, random_state=0).fit(X, y).novelty(X[:50])


def towers(_: Processes) -> np.ndarray:
    entities = np.arange(len(X)) % 7
    settings: dict[str, Any] = {"hidden": (8,), "embedding_size": 4, "epochs": 2, "batch_size": 64}
    return ClosedFormDetector(**settings, random_state=0).fit(X, entities).novelty(X, entities)


@pytest.mark.parametrize("work", [heads, towers])
def test_heads_and_towers_end_alike_on_all_processes(
    pool: ProcessPoolExecutor, tmp_path: Path, work: several.Work
) -> None:
    one, other = results(pool, tmp_path, 2, work)
    np.testing.assert_array_equal(one, other)


def diverging(processes: Processes) -> None:
    """The loss of the last process alone becomes infinite."""
    weight = nn.Linear(1, 1)
    optimizer = SGD(weight.parameters(), lr=0.1)

    def terms(batch: Batch) -> dict[str, Tensor]:
        return {"loss": weight(batch[0]).square().mean() * (torch.inf if processes.rank == processes.count - 1 else 1)}

    train(descend(optimizer, terms), Batches((ROWS[:, :1],), size=9), epochs=2, state={"weight": weight})


def test_all_processes_stop_if_the_loss_of_one_is_not_finite(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    for each in several.start(pool, 2, tmp_path, diverging):
        with pytest.raises(TrainingError, match=r"'loss' became (inf|nan) in epoch 1"):
            each.result(timeout=60)


def failing(processes: Processes) -> None:
    weight = nn.Linear(2, 1)
    optimizer = SGD(weight.parameters(), lr=0.1)

    def terms(batch: Batch) -> dict[str, Tensor]:
        if processes.rank == 1:
            raise ValueError("file 7 is damaged")
        return {"loss": weight(batch[0]).square().mean()}

    train(descend(optimizer, terms), Batches((ROWS,), size=9), epochs=2, state={"weight": weight})


def test_the_others_name_the_process_that_failed_and_why(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    first, second = several.start(pool, 2, tmp_path, failing)
    with pytest.raises(ValueError, match="file 7 is damaged"):
        second.result(timeout=60)
    with pytest.raises(WorkFailed, match="training stopped: process 1 of 2 failed: file 7 is damaged"):
        first.result(timeout=60)


def with_few_rows(_: Processes) -> None:
    Batches((ROWS[:3],), size=2).shared(Processes(0, 4))


def without_seed(_: Processes) -> None:
    NearestNeighborDetector().fit(X)


@pytest.mark.parametrize(
    ("work", "message"), [(with_few_rows, "cannot be shared by 4 processes"), (without_seed, "random_state must be")]
)
def test_what_cannot_work_is_refused(
    pool: ProcessPoolExecutor, tmp_path: Path, work: several.Work, message: str
) -> None:
    for each in several.start(pool, 2, tmp_path, work):
        with pytest.raises(ValueError, match=message):
            each.result(timeout=60)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_shares_of_a_batch_are_the_batch(count: int) -> None:
    with local_seed(3):
        whole = list(Batches((torch.arange(31),), size=8))
    shares = []
    for rank in range(count):
        with local_seed(3):
            shares.append(list(Batches((torch.arange(31),), size=8).shared(Processes(rank, count))))
    for place, (rows,) in enumerate(whole):
        np.testing.assert_array_equal(torch.cat([share[place][0] for share in shares]), rows)
