"""Resumed runs against uninterrupted ones: of the loop, and of a detector whose process was killed."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Adam

from offmap import tensorfile
from offmap.checkpoint import Checkpoint
from offmap.density import VAEDetector
from offmap.nets import ConvEncoder
from offmap.random_state import local_seed
from offmap.train import Batches, History, descend, train
from tests.training_runs import ROWS, flat, squares, stopping


def noisy_run(path: Path | None, stop_at: int = 0, epochs: int = 6, run: str = "the run") -> tuple[Tensor, History]:
    """Trains with dropout, momentum, random batches and a best epoch: all that a checkpoint holds. Four steps each."""
    with local_seed(0):
        network = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
        optimizer = Adam(network.parameters(), lr=0.3)
        history = train(
            stopping(descend(optimizer, squares(network)), stop_at),
            Batches((ROWS,), 4),
            epochs=epochs,
            state={"network": network, "optimizer": optimizer},
            validate=lambda: float((network(ROWS) - ROWS[:, :1]).square().mean()),
            patience=4,
            checkpoint=None if path is None else Checkpoint(path, run),
        )
    return flat(network), history


@pytest.mark.parametrize("stop_at", [1, 4, 5, 11, 23, 24])
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path, stop_at: int) -> None:
    path = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt):
        noisy_run(path, stop_at)
    assert path.exists() == (stop_at > 4)
    weights, history = noisy_run(path)
    expected_weights, expected_history = noisy_run(None)
    assert history == expected_history
    assert torch.equal(weights, expected_weights)
    assert list(tmp_path.iterdir()) == []


def test_resuming_does_not_repeat_finished_epochs(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt):
        noisy_run(path, stop_at=21)
    with pytest.raises(KeyboardInterrupt):
        noisy_run(path, stop_at=4)
    noisy_run(path, stop_at=5)


def test_a_best_epoch_before_the_interruption_is_restored(tmp_path: Path) -> None:
    best = noisy_run(None)[1]["validation"]
    stop_at = 4 * (int(np.argmin(best)) + 1) + 2
    assert np.argmin(best) + 1 < len(best), "the best epoch must not be the last one for this test to mean anything"
    with pytest.raises(KeyboardInterrupt):
        noisy_run(tmp_path / "run.safetensors", stop_at)
    assert torch.equal(noisy_run(tmp_path / "run.safetensors")[0], noisy_run(None)[0])


def test_a_checkpoint_of_another_run_or_another_file_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt):
        noisy_run(path, stop_at=9)
    left = path.read_bytes()
    with pytest.raises(ValueError, match=r"run\.safetensors belongs to other data or parameters; remove it"):
        noisy_run(path, run="another run")
    assert path.read_bytes() == left
    model = tmp_path / "model.safetensors"
    detector(None).fit(SAMPLE).save(model)
    saved = model.read_bytes()
    with pytest.raises(ValueError, match=r"model\.safetensors exists and is not a checkpoint of a training run"):
        noisy_run(model)
    assert model.read_bytes() == saved
    path.write_bytes(left[:-1])
    with pytest.raises(ValueError, match=r"run\.safetensors is not a whole safetensors file"):
        noisy_run(path)


@pytest.mark.parametrize(
    ("part", "value"),
    [("parts", {}), ("random", torch.zeros(3)), ("parts", {"network": {"weight": torch.zeros(1)}}), ("record", None)],
)
def test_a_checkpoint_whose_content_was_edited_is_refused_and_kept(tmp_path: Path, part: str, value: Any) -> None:
    path = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt):
        noisy_run(path, stop_at=9)
    content = tensorfile.read(path)
    if value is None:
        del content[part]
    else:
        content[part] = value
    tensorfile.write(path, content)
    left = path.read_bytes()
    with pytest.raises(ValueError, match=r"checkpoint .*run\.safetensors does not fit the run: .+; remove it"):
        noisy_run(path)
    assert path.read_bytes() == left


SAMPLE = np.random.default_rng(0).normal(size=(200, 3))


DETECTOR: dict[str, Any] = {"epochs": 4, "batch_size": 20, "hidden": (6,), "latent_dim": 2, "patience": 3}


DETECTOR["random_state"] = 0


KILLED_WHILE_TRAINING = """
import json, os, signal, sys
import numpy as np
import torch
from offmap.density import VAEDetector
from offmap.density.vae import steps
from offmap.train import descend

torch.set_num_threads(1)
calls = iter(range(1, 1000))

def descend_until_killed(*arguments):
    step = descend(*arguments)
    def killing(batch):
        if next(calls) == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(batch)
    return killing

steps.descend = descend_until_killed
settings = json.loads(sys.argv[2])
settings["hidden"] = tuple(settings["hidden"])
rows = np.random.default_rng(0).normal(size=(200, 3))
VAEDetector(**settings, checkpoint=sys.argv[1]).fit(rows)
"""


def detector(checkpoint: Path | None, **changes: Any) -> VAEDetector:
    return VAEDetector(**DETECTOR | changes, checkpoint=None if checkpoint is None else str(checkpoint))


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The checkpoint of a detector whose process was killed in its third epoch."""
    path = tmp_path_factory.mktemp("killed") / "run.safetensors"
    command = [sys.executable, "-c", KILLED_WHILE_TRAINING, str(path), json.dumps(DETECTOR)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    return path.read_bytes()


def test_a_detector_resumes_exactly_after_its_process_was_killed(killed: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    path.write_bytes(killed)
    resumed, whole = detector(path).fit(SAMPLE), detector(None).fit(SAMPLE)
    assert resumed.history_ == whole.history_
    assert torch.equal(flat(resumed.network_), flat(whole.network_))
    assert resumed.novelty(SAMPLE).tobytes() == whole.novelty(SAMPLE).tobytes()
    assert not path.exists()


def test_convolutions_resume_exactly_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layout of their weights in memory differs from that in the file."""
    images, path = np.random.default_rng(0).random((60, 16, 16)), tmp_path / "run.safetensors"
    changes: dict[str, Any] = {"likelihood": "bernoulli", "alpha": 0.2}
    with monkeypatch.context() as patch:
        patch.setattr("offmap.density.vae.steps.descend", lambda *arguments: stopping(descend(*arguments), 8))
        with pytest.raises(KeyboardInterrupt):
            detector(path, **changes).fit(images)
    resumed, whole = detector(path, **changes).fit(images), detector(None, **changes).fit(images)
    assert isinstance(whole.network_.encoder, ConvEncoder)
    assert torch.equal(flat(resumed.network_), flat(whole.network_))


def test_a_detector_may_resume_with_more_epochs(killed: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    path.write_bytes(killed)
    assert detector(path, epochs=7).fit(SAMPLE).history_ == detector(None, epochs=7).fit(SAMPLE).history_


@pytest.mark.parametrize(
    ("rows", "changes"),
    [
        (SAMPLE, {"latent_dim": 3}),
        (SAMPLE, {"lr": 2e-3}),
        (SAMPLE, {"random_state": 1}),
        (SAMPLE, {"patience": None}),
        (SAMPLE[:-1], {}),
        (SAMPLE[::-1], {}),
        (SAMPLE[:, ::-1], {}),
        # Standardised, these are the same bytes.
        (4 * SAMPLE, {}),
    ],
)
def test_a_detector_refuses_the_checkpoint_of_other_parameters_or_data(
    killed: bytes, tmp_path: Path, rows: Any, changes: dict[str, Any]
) -> None:
    path = tmp_path / "run.safetensors"
    path.write_bytes(killed)
    with pytest.raises(ValueError, match="belongs to other data or parameters"):
        detector(path, **changes).fit(rows)
    assert path.read_bytes() == killed


def test_a_checkpoint_tells_apart_rows_of_other_shapes_with_the_same_bytes(tmp_path: Path) -> None:
    estimator, rows = detector(tmp_path / "run.safetensors"), torch.arange(24.0)
    runs = [Checkpoint.of(estimator, rows.reshape(4, *shape)) for shape in ((2, 3), (3, 2), (6,))]
    assert len({checkpoint.run for checkpoint in runs if checkpoint is not None}) == 3


def test_a_checkpoint_needs_an_integer_seed_and_a_folder(tmp_path: Path) -> None:
    for seed in (None, np.random.default_rng(0), np.random.RandomState(0)):
        with pytest.raises(ValueError, match="checkpoint needs an integer random_state"):
            detector(tmp_path / "run.safetensors", random_state=seed).fit(SAMPLE)
    detector(tmp_path / "run.safetensors", random_state=np.int64(0)).fit(SAMPLE)
    with pytest.raises(FileNotFoundError, match=r"checkpoint .*: the folder .*absent does not exist"):
        detector(tmp_path / "absent" / "run.safetensors").fit(SAMPLE)
