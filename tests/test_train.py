"""The training loop against naive loops."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.optim import SGD

from offmap.random_state import local_seed
from offmap.train import Batch, Batches, History, Step, TrainingError, descend, train
from tests.training_runs import ROWS, flat, squares


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


@pytest.mark.parametrize(
    ("network", "threads"),
    [
        (nn.Linear(2, 100), 1),
        (nn.Sequential(nn.Linear(2, 800), nn.Linear(800, 800)), 2),
        (nn.Sequential(nn.Unflatten(1, (1, 1, 2)), nn.Conv2d(1, 1, 1)), 2),
    ],
    ids=["small", "large", "convolutions"],
)
def test_small_networks_train_on_one_thread(network: nn.Module, threads: int) -> None:
    seen: set[int] = set()
    step = descend(SGD(network.parameters(), lr=0.0), squares(network))

    def noting(batch: Batch) -> dict[str, Tensor]:
        seen.add(torch.get_num_threads())
        return step(batch)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run_once(noting, network)
        assert (seen, torch.get_num_threads()) == ({threads}, 2)
    finally:
        torch.set_num_threads(before)
