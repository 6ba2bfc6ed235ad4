"""The distance to the nearest training row, in the row itself and in what the model makes of it."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from offmap.density import VAEDetector
from offmap.density.vae.network import VAE
from offmap.density.vae.scores import SCORES, Networks
from offmap.metrics import auroc
from offmap.random_state import local_seed

NEAREST = SCORES["nearest"]


def network(features: int = 4, latent_dim: int = 3) -> VAE:
    with local_seed(0):
        return VAE((features,), latent_dim=latent_dim, hidden=(8,), likelihood="gaussian_learned").eval()


def test_both_views_are_as_wide_and_hold_the_row_and_what_the_model_makes_of_it() -> None:
    vae, X = network(), torch.randn(5, 4)
    row, model = NEAREST.statistics(Networks(vae), X).chunk(2, dim=1)
    torch.testing.assert_close(row, torch.cat([X, torch.zeros(5, 3)], dim=1))
    torch.testing.assert_close(model[:, :4], (X - vae.decoder(vae.posterior(X).mean)) / vae.likelihood.scale)
    torch.testing.assert_close(model[:, 4:], vae.posterior(X).mean)


def test_the_score_is_that_of_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    normal, rows = rng.normal(size=(20, 6)), rng.normal(size=(7, 6))
    expected = np.zeros(7)
    for columns in (slice(0, 3), slice(3, 6)):
        between = np.linalg.norm(normal[:, None, columns] - normal[None, :, columns], axis=2)
        usual = (between + np.diag(np.full(20, np.inf))).min(1).mean()
        for place, row in enumerate(rows):
            expected[place] += 0.5 * min(np.linalg.norm(row[columns] - other[columns]) for other in normal) / usual
    np.testing.assert_allclose(NEAREST.novelty_function(normal)(torch.from_numpy(rows)).numpy(), expected, rtol=1e-9)


def test_a_training_row_is_as_far_as_the_nearest_other_one() -> None:
    normal = np.array([[0.0, 0.0], [1.0, 1.0], [4.0, 4.0]])
    # The usual distance is (1 + 1 + 3) / 3.
    assert NEAREST.novelty_function(normal)(torch.from_numpy(normal)).tolist() == pytest.approx([0.6, 0.6, 1.8])


def test_an_infinite_row_is_as_novel_as_can_be() -> None:
    novelty = NEAREST.novelty_function(np.random.default_rng(0).normal(size=(20, 4)))
    assert novelty(torch.tensor([[0.0, torch.inf, 0.0, 0.0]])).tolist() == [float("inf")]


@pytest.mark.parametrize("copies", [1, 5])
def test_equal_rows_leave_a_unit_to_measure_in(copies: int) -> None:
    novelty = NEAREST.novelty_function(np.ones((copies, 4)))
    found = novelty(torch.tensor([[1.0, 1, 1, 1], [2, 1, 1, 1], [3, 1, 1, 1]]))
    assert found[0] == 0
    assert 0 < found[1] < found[2] < torch.inf


def test_it_sees_rows_that_break_how_features_go_together() -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(2, 6))

    def together(count: int) -> NDArray[np.float64]:
        return rng.normal(size=(count, 2)) @ weights + 0.05 * rng.normal(size=(count, 6))

    detector = VAEDetector(novelty_score="nearest", random_state=0, epochs=40).fit(together(600))
    broken = np.column_stack([rng.permutation(column) for column in together(200).T])
    assert auroc(detector.novelty(together(200)), detector.novelty(broken)) > 0.97


def test_it_sees_rows_between_normal_ones() -> None:
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, size=400)
    ring = np.column_stack([np.cos(angles), np.sin(angles)]) + 0.05 * rng.normal(size=(400, 2))
    detector = VAEDetector(novelty_score="nearest", random_state=0, epochs=10).fit(ring[:300])
    centre = 0.1 * rng.normal(size=(100, 2))
    assert auroc(detector.novelty(ring[300:]), detector.novelty(centre)) > 0.97
