"""The training loop against naive loops, and resumed runs against uninterrupted ones."""

import json
import math
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.optim import SGD, Adam

from offmap.checkpoint import Checkpoint
from offmap.density import VAEDetector
from offmap.nets import ConvEncoder
from offmap.random_state import local_seed
from offmap.train import Batch, Batches, History, Step, TrainingError, descend, train

ROWS = torch.linspace(-1, 1, 28).reshape(14, 2)


def flat(module: nn.Module) -> Tensor:
    return torch.cat([tensor.detach().flatten().clone() for tensor in module.state_dict().values()])


def squares(network: nn.Module) -> Callable[[Batch], dict[str, Tensor]]:
    """Two terms, so that a sum and a mean of them differ."""

    def terms(batch: Batch) -> dict[str, Tensor]:
        output = network(batch[0])
        return {"fit": (output - 3).square().mean(), "size": 0.1 * output.square().mean()}

    return terms


def run_once(step: Step, network: nn.Module, **options: Any) -> History:
    defaults: dict[str, Any] = {"epochs": 3, "state": {"network": network}}
    return train(step, Batches((ROWS,), 4), **defaults | options)


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(1, 70), st.integers(0, 9))
def test_batches_cover_every_row_once_and_leave_no_row_alone(rows: int, size: int, seed: int) -> None:
    numbers = torch.arange(rows)
    with local_seed(seed):
        batches = Batches((numbers, -numbers), size)
        drawn = list(batches)
    assert len(drawn) == len(batches)
    assert sorted(torch.cat([first for first, _ in drawn]).tolist()) == list(range(rows))
    assert all(torch.equal(first, -second) for first, second in drawn)
    widths = [len(first) for first, _ in drawn]
    assert max(widths) - min(widths) <= 1
    assert max(widths) <= (3 if size == 2 else size)
    if rows > 1 and size > 1:
        assert min(widths) > 1


def test_batches_come_in_a_new_order_each_epoch() -> None:
    with local_seed(0):
        batches = Batches((torch.arange(50),), 50)
        first, second = (next(iter(batches))[0] for _ in range(2))
    assert not torch.equal(first, second)
    assert not torch.equal(first, torch.arange(50))


def test_local_seed_decides_the_draws_and_leaves_the_global_state_alone() -> None:
    before, numpy_before = torch.get_rng_state(), np.random.get_state(legacy=False)

    def draw(seed: int) -> Tensor:
        with local_seed(seed):
            return torch.randn(4)

    assert torch.equal(draw(7), draw(7))
    assert not torch.equal(draw(7), draw(8))
    with pytest.raises(ZeroDivisionError), local_seed(1):
        torch.randn(1).item() / 0
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_equal(np.random.get_state(legacy=False), numpy_before)


def test_a_step_moves_down_the_gradient_of_the_sum_of_the_terms() -> None:
    network = nn.Linear(2, 1)
    before = [parameter.detach().clone() for parameter in network.parameters()]
    terms = squares(network)((ROWS,))
    slopes = torch.autograd.grad(terms["fit"] + terms["size"], list(network.parameters()))
    returned = descend(SGD(network.parameters(), lr=0.5), squares(network))((ROWS,))
    for parameter, start, slope in zip(network.parameters(), before, slopes, strict=True):
        torch.testing.assert_close(parameter.detach(), start - 0.5 * slope)
    assert {name: term.item() for name, term in returned.items()} == {name: t.item() for name, t in terms.items()}
    assert not any(term.requires_grad for term in returned.values())


@pytest.mark.parametrize(("clip", "moved"), [(None, 5.0), (10.0, 5.0), (2.0, 2.0), (0.5, 0.5)])
def test_gradients_longer_than_clip_are_shortened_to_it(clip: float | None, moved: float) -> None:
    first, second = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
    step = descend(SGD([first, second], lr=1.0), lambda _: {"slope": (3 * first[0] + 4 * second).sum()}, clip)
    for times in (1, 2):
        step((ROWS,))
        torch.testing.assert_close(torch.cat([first, second]).norm().item(), times * moved, rtol=1e-5, atol=0)
    torch.testing.assert_close(first[0] / second[0], torch.tensor(0.75))


def test_two_networks_alternate_on_each_batch_and_each_updates_its_own_weights() -> None:
    def trained(together: bool) -> tuple[Tensor, History]:
        with local_seed(0):
            critic, encoder = nn.Linear(2, 1), nn.Linear(2, 2)
            first = descend(SGD(critic.parameters(), lr=0.1), lambda b: {"critic": -critic(encoder(b[0])).mean()})
            second = descend(SGD(encoder.parameters(), lr=0.1), lambda b: {"encoder": critic(encoder(b[0])).mean()})
            state: dict[str, nn.Module] = {"critic": critic, "encoder": encoder}
            if together:
                history = train(lambda b: first(b) | second(b), Batches((ROWS,), 4), epochs=2, state=state)
            else:
                history = naively(first, second, epochs=2)
        return torch.cat([flat(critic), flat(encoder)]), history

    (weights, history), (expected_weights, expected_history) = trained(together=True), trained(together=False)
    assert torch.equal(weights, expected_weights)
    assert history.keys() == expected_history.keys()
    for name, values in expected_history.items():
        np.testing.assert_allclose(history[name], values, rtol=1e-5)


def naively(first: Step, second: Step, epochs: int) -> History:
    history: History = {"critic": [], "encoder": []}
    for _ in range(epochs):
        losses = [(first(batch)["critic"].item(), second(batch)["encoder"].item()) for batch in Batches((ROWS,), 4)]
        history["critic"].append(sum(critic for critic, _ in losses) / len(losses))
        history["encoder"].append(sum(encoder for _, encoder in losses) / len(losses))
    return history


def test_history_is_the_mean_of_each_term_epoch_by_epoch() -> None:
    drawn: list[dict[str, float]] = []

    def step(batch: Batch) -> dict[str, Tensor]:
        drawn.append({"sum": float(batch[0].sum()), "largest": float(batch[0].max())})
        return {name: torch.tensor(value) for name, value in drawn[-1].items()}

    history = run_once(step, nn.Linear(2, 1))
    assert len(drawn) == 3 * 4
    for name in ("sum", "largest"):
        naive = [sum(each[name] for each in drawn[epoch : epoch + 4]) / 4 for epoch in (0, 4, 8)]
        np.testing.assert_allclose(history[name], naive, atol=1e-6)


class Scripted:
    """A run with scripted validation values, which records the weights at each validation."""

    def __init__(self, script: list[float]) -> None:
        self.network = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 1))
        self.step = descend(SGD(self.network.parameters(), lr=0.05), squares(self.network))
        self.script, self.weights = iter(script), list[Tensor]()
        self.modes = set[tuple[str, bool, bool]]()

    def validate(self) -> float:
        self.weights.append(flat(self.network))
        self.modes.add(("validate", self.network.training, torch.is_grad_enabled()))
        return next(self.script)

    def watched(self, batch: Batch) -> dict[str, Tensor]:
        self.modes.add(("step", self.network.training, torch.is_grad_enabled()))
        return self.step(batch)

    def run(self, **options: Any) -> History:
        return run_once(self.watched, self.network, validate=self.validate, **options)


@pytest.mark.parametrize(
    ("script", "patience", "epochs_run", "best"),
    [
        ([3, 1, 2, 2, 0, 0], 2, 4, 2),
        ([3, 1, 2, 0.5, 2, 1], 2, 6, 4),
        ([3, 1, 1, 1, 0, 0], 2, 4, 2),
        ([3, 1, 2, 0, 9, 9], None, 6, 4),
        ([6, 5, 4, 3, 2, 1], 1, 6, 6),
        ([1, 2, 0, 0, 0, 0], 1, 2, 1),
    ],
)
def test_early_stopping_ends_with_the_best_epoch(
    script: list[float], patience: int | None, epochs_run: int, best: int
) -> None:
    run = Scripted(script)
    history = run.run(epochs=6, patience=patience)
    assert history["validation"] == script[:epochs_run]
    assert {len(values) for values in history.values()} == {epochs_run}
    assert torch.equal(flat(run.network), run.weights[best - 1])
    assert best == epochs_run or not torch.equal(flat(run.network), run.weights[-1])
    assert run.modes == {("step", True, True), ("validate", False, False)}
    assert not run.network.training


def test_without_validation_the_last_weights_stay_and_networks_end_in_eval_mode() -> None:
    network = nn.Linear(2, 1)
    step, after = descend(SGD(network.parameters(), lr=0.05), squares(network)), list[Tensor]()

    def remembering(batch: Batch) -> dict[str, Tensor]:
        terms = step(batch)
        after.append(flat(network))
        return terms

    run_once(remembering, network)
    assert torch.equal(flat(network), after[-1])
    assert not network.training


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_term_that_is_not_finite_is_named_with_its_epoch(bad: float) -> None:
    numbers = iter([1.0] * 7 + [bad] + [1.0] * 99)
    with pytest.raises(TrainingError, match=rf"the term 'slope' became {bad} in epoch 2"):
        run_once(lambda _: {"fine": torch.tensor(1.0), "slope": torch.tensor(next(numbers))}, nn.Linear(2, 1))
    with pytest.raises(TrainingError, match=rf"the term 'validation' became {bad} in epoch 3"):
        Scripted([1, 1, bad]).run()


def stopping(step: Step, at: int) -> Step:
    """The step, interrupted at its call number ``at``."""
    calls: Iterator[int] = iter(range(1, 10_000))

    def interrupted(batch: Batch) -> dict[str, Tensor]:
        if next(calls) == at:
            raise KeyboardInterrupt
        return step(batch)

    return interrupted


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
