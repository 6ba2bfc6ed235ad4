"""Fits and scoring in threads: the bytes of a run alone, and the process left as it was."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch

from offmap.collaborative.base import EntityDetector
from offmap.density import VAEDetector
from tests.estimators import CLASSES, ENTITY_DETECTORS, brief

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(200, 4)), np.arange(200) % 3
IMAGES = RNG.integers(256, size=(300, 16, 16), dtype=np.uint8)


@contextmanager
def both_random_states_left_alone() -> Iterator[None]:
    torch_before = torch.get_rng_state()
    numpy_before = np.random.get_state(legacy=False)["state"]["key"].copy()
    yield
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert (np.random.get_state(legacy=False)["state"]["key"] == numpy_before).all()


def novelty_of(model: Any) -> bytes:
    asked = (X, Y) if isinstance(model, EntityDetector) else (X,)
    return bytes(model.novelty(*asked).tobytes())


def in_threads(work: Callable[[int], bytes], arguments: list[int], threads: int) -> list[bytes]:
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, arguments))


@pytest.mark.parametrize("cls", [*CLASSES, *ENTITY_DETECTORS])
def test_fits_in_threads_give_the_bytes_of_a_fit_alone(cls: Any) -> None:
    def fitted(seed: int) -> bytes:
        return novelty_of(brief(cls, random_state=seed).fit(X, Y))

    alone = [fitted(0), fitted(1)]
    with both_random_states_left_alone():
        assert in_threads(fitted, [0, 1, 0, 1], threads=4) == [*alone, *alone]


@pytest.mark.parametrize("cls", [*CLASSES, *ENTITY_DETECTORS])
def test_eight_threads_score_one_model_as_one_does(cls: Any) -> None:
    model = brief(cls).fit(X, Y)
    alone = novelty_of(model)
    with both_random_states_left_alone():
        assert set(in_threads(lambda _: novelty_of(model), list(range(16)), threads=8)) == {alone}


def test_scoring_in_threads_leaves_the_number_of_threads_alone() -> None:
    model = VAEDetector(epochs=1, random_state=0).fit(IMAGES)
    alone, count = model.novelty(IMAGES).tobytes(), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert set(in_threads(lambda _: model.novelty(IMAGES).tobytes(), list(range(16)), threads=8)) == {alone}
        seen: list[int] = []
        fresh = Thread(target=lambda: seen.append(torch.get_num_threads()))
        fresh.start()
        fresh.join()
        assert (torch.get_num_threads(), seen) == (2, [2])
    finally:
        torch.set_num_threads(count)
