"""Fits and scoring in threads: the bytes of a run alone, and the process left as it was."""

from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import numpy as np
import torch

from offmap.density import VAEDetector
from offmap.openset import MSPClassifier

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(300, 4)), RNG.integers(3, size=300)
IMAGES = RNG.integers(256, size=(300, 16, 16), dtype=np.uint8)


def fitted(seed: int) -> bytes:
    return MSPClassifier(epochs=5, random_state=seed).fit(X, Y).novelty(X).tobytes()


def test_fits_in_threads_give_the_bytes_of_a_fit_alone() -> None:
    alone = [fitted(seed) for seed in (0, 1, 0, 1)]
    torch_before = torch.get_rng_state()
    numpy_before = np.random.get_state(legacy=False)["state"]["key"].copy()
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fitted, (0, 1, 0, 1)))
    assert together == alone
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert (np.random.get_state(legacy=False)["state"]["key"] == numpy_before).all()


def test_eight_threads_score_one_model_as_one_does() -> None:
    model = VAEDetector(epochs=1, random_state=0).fit(IMAGES)
    alone = model.novelty(IMAGES).tobytes()
    count, state = torch.get_num_threads(), torch.get_rng_state()
    torch.set_num_threads(2)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(lambda _: model.novelty(IMAGES).tobytes(), range(16))) == {alone}
        seen: list[int] = []
        fresh = Thread(target=lambda: seen.append(torch.get_num_threads()))
        fresh.start()
        fresh.join()
        assert (torch.get_num_threads(), seen) == (2, [2])
        assert torch.equal(torch.get_rng_state(), state)
    finally:
        torch.set_num_threads(count)
