"""Drawing from a fitted sampler: counts are checked, no lock is taken, and threads give the serial bytes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import offmap
from offmap.random_state import local_seed
from offmap.sampling import FGAN, RAS, SVGD, AmortisedSVGD, BinaryVAE
from offmap.sampling.draws import torch_rng
from offmap.sampling.rl import SoftQAgent
from tests.sampling.rl.plane import Plane

SMALL: dict[str, Any] = {"dim": 2, "hidden": (8,), "steps": 3, "batch_size": 16, "random_state": 0}
ROWS = np.random.default_rng(0).normal(size=(50, 2))
BINARY = (ROWS > 0).astype(np.float32)
STATES = torch.zeros(7, 2)


def gaussian(x: Tensor) -> Tensor:
    return -x.square().sum(1) / 2


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    agent = SoftQAgent(
        steps=40, warmup=20, hidden=(8,), batch_size=8, policy_batch_size=2, candidates=2, random_state=0
    )
    return {
        "ras": RAS(log_density=gaussian, **SMALL).fit(),
        "fgan": FGAN(**SMALL).fit(ROWS),
        "amortised svgd": AmortisedSVGD(log_density=gaussian, **SMALL).fit(),
        "svgd": SVGD(log_density=gaussian, particles=20, steps=3, random_state=0).fit(),
        "ras posterior": BinaryVAE(hidden=(8,), epochs=1, random_state=0).fit(BINARY),
        "gaussian posterior": BinaryVAE(posterior="gaussian", hidden=(8,), epochs=1, random_state=0).fit(BINARY),
        "agent": agent.fit(Plane(n_envs=10)),
    }


DRAWS: dict[str, tuple[str, Callable[[Any, int], Any]]] = {
    "RAS.sample": ("ras", lambda model, seed: model.sample(5000, random_state=seed)),
    "RAS.log_prob_estimate": ("ras", lambda model, seed: model.log_prob_estimate(ROWS)),
    "RAS.log_z": ("ras", lambda model, seed: model.log_z(100, random_state=seed)),
    "RAS.ess": ("ras", lambda model, seed: model.ess(100, random_state=seed)),
    "FGAN.sample": ("fgan", lambda model, seed: model.sample(100, random_state=seed)),
    "AmortisedSVGD.sample": ("amortised svgd", lambda model, seed: model.sample(100, random_state=seed)),
    "SVGD.sample": ("svgd", lambda model, seed: model.sample(30, random_state=seed)),
    "BinaryVAE.elbo, ras": ("ras posterior", lambda model, seed: model.elbo(BINARY, random_state=seed)),
    "BinaryVAE.elbo, gaussian": ("gaussian posterior", lambda model, seed: model.elbo(BINARY, random_state=seed)),
    "BinaryVAE.log_likelihood": ("ras posterior", lambda model, seed: model.log_likelihood(BINARY, 20, seed)),
    "BinaryVAE.sample_posterior": ("ras posterior", lambda model, seed: model.sample_posterior(BINARY, 3, seed)),
    "SoftQAgent.sample": ("agent", lambda model, seed: model.sample(STATES, 5, torch_rng(seed))),
    "SoftQAgent.act": ("agent", lambda model, seed: model.act(STATES, torch_rng(seed))),
    "SoftQAgent.best": ("agent", lambda model, seed: model.best(STATES)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_eight_threads_give_the_serial_bytes_and_leave_the_global_state(name: str, fitted: dict[str, Any]) -> None:
    key, draw = DRAWS[name]
    before = torch.get_rng_state(), str(np.random.get_state()), torch.get_num_threads()
    serial = [np.asarray(draw(fitted[key], seed)).tobytes() for seed in range(24)]
    with ThreadPoolExecutor(8) as pool:
        parallel = list(pool.map(lambda seed: np.asarray(draw(fitted[key], seed)).tobytes(), range(24)))
    assert parallel == serial
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (str(np.random.get_state()), torch.get_num_threads()) == before[1:]


@pytest.mark.parametrize("name", DRAWS)
def test_drawing_takes_no_lock(name: str, fitted: dict[str, Any]) -> None:
    key, draw = DRAWS[name]
    thread = Thread(target=draw, args=(fitted[key], 0), daemon=True)
    with local_seed(0):
        thread.start()
        thread.join(timeout=20)
        assert not thread.is_alive()


@pytest.mark.parametrize("key", ["ras", "fgan", "amortised svgd", "svgd"])
@pytest.mark.parametrize("n", [-1, 0, 2.0, "3", True, None])
def test_a_count_that_is_not_a_positive_integer_is_refused(key: str, n: Any, fitted: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="n must be an integer at least 1; got"):
        fitted[key].sample(n)


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("n", lambda models: models["ras"].log_z(-1)),
        ("n", lambda models: models["ras"].ess(0)),
        ("rounds", lambda models: models["ras posterior"].elbo(BINARY, rounds=0)),
        ("draws", lambda models: models["ras posterior"].log_likelihood(BINARY, draws=-1)),
        ("count", lambda models: models["ras posterior"].sample_posterior(BINARY, count=1.5)),
        ("count", lambda models: models["agent"].sample(STATES, count=0)),
    ],
)
def test_other_counts_are_checked_too(name: str, draw: Callable[[Any], Any], fitted: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{name} must be an integer at least 1"):
        draw(fitted)


@pytest.mark.parametrize("key", ["svgd", "ras posterior", "gaussian posterior"])
def test_models_without_a_generator_are_saved_and_loaded(key: str, fitted: dict[str, Any], tmp_path: Path) -> None:
    name = next(name for name, (model, _) in DRAWS.items() if model == key)
    fitted[key].save(tmp_path / "model.safetensors")
    loaded = offmap.load(tmp_path / "model.safetensors")
    assert type(loaded) is type(fitted[key])
    first, second = (np.asarray(DRAWS[name][1](model, 0)).tobytes() for model in (fitted[key], loaded))
    assert first == second


def test_without_a_seed_every_call_draws_anew(fitted: dict[str, Any]) -> None:
    assert not np.array_equal(fitted["ras"].sample(10), fitted["ras"].sample(10))
    assert not torch.equal(fitted["agent"].sample(STATES), fitted["agent"].sample(STATES))


@pytest.mark.parametrize("key", ["ras", "fgan", "amortised svgd", "svgd"])
@pytest.mark.parametrize("wrong", [-1, 0.5, "zero"])
def test_a_seed_that_is_none_is_named(key: str, wrong: Any, fitted: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="random_state must be None, an integer at least 0 or a NumPy generator; got"):
        fitted[key].sample(3, random_state=wrong)


@pytest.mark.parametrize(
    "fit",
    [
        lambda: RAS(log_density=gaussian, random_state=-1).fit(),
        lambda: AmortisedSVGD(log_density=gaussian, random_state=-1).fit(),
        lambda: SVGD(log_density=gaussian, random_state=-1).fit(),
        lambda: FGAN(random_state=-1).fit(ROWS),
        lambda: BinaryVAE(random_state=-1).fit(BINARY),
        lambda: SoftQAgent(random_state=-1).fit(Plane(n_envs=2)),
    ],
)
def test_a_negative_seed_of_a_fit_is_named(fit: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="random_state must be an integer at least 0 or None; got -1"):
        fit()


@pytest.mark.parametrize("method", ["elbo", "log_likelihood", "sample_posterior"])
def test_the_draws_of_a_posterior_follow_random_state(method: str, fitted: dict[str, Any]) -> None:
    call = getattr(fitted["ras posterior"], method)
    assert np.array_equal(call(BINARY), call(BINARY, random_state=np.int64(0)))
    assert not np.array_equal(call(BINARY), call(BINARY, random_state=1))
    assert not np.array_equal(call(BINARY, random_state=None), call(BINARY, random_state=None))
    with pytest.raises(ValueError, match="random_state must be an integer at least 0 or None; got -1"):
        call(BINARY, random_state=-1)


def test_an_integer_seeds_the_generator_of_a_posterior_itself(fitted: dict[str, Any]) -> None:
    model = fitted["ras posterior"]
    with torch.no_grad():
        expected = model.model_.posterior.draw(torch.from_numpy(BINARY[:5]), 3, torch.Generator().manual_seed(7))
    assert np.array_equal(model.sample_posterior(BINARY[:5], 3, random_state=7), expected.double().numpy())
