"""Which reference rows scores are compared with, and what a score requires."""

import numpy as np
import pytest
import torch

from offmap.density.vae.network import VAE
from offmap.density.vae.scores import SCORES, Networks
from offmap.density.vae.scoring import Scorer, reference_statistics
from offmap.random_state import local_seed

with local_seed(0):
    NETWORKS = Networks(VAE((2,), latent_dim=2, hidden=(4,), likelihood="gaussian").eval())


PREPARED = [SCORES[name] for name in ("bpd", "typicality", "nearest")]


def rows(count: int, seed: int) -> torch.Tensor:
    return torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))


def measured(held_out: torch.Tensor, training: torch.Tensor) -> dict[str, np.ndarray]:
    with local_seed(0):
        return reference_statistics(PREPARED, NETWORKS, held_out, training)


@pytest.mark.parametrize(("held", "expected"), [(0, 1_000), (30, 1_000), (1_500, 1_500), (2_500, 2_000)])
def test_training_rows_fill_up_few_held_out_rows_and_many_are_cut(held: int, expected: int) -> None:
    held_out, training = rows(held, 1), rows(1_200, 2)
    found = measured(held_out, training)
    assert found.keys() == {"typicality", "nearest"}
    with torch.no_grad():
        expected_statistics = SCORES["typicality"].statistics(NETWORKS, torch.cat([held_out, training])[:expected])
    np.testing.assert_allclose(found["typicality"], expected_statistics.numpy(), rtol=1e-5)


def test_the_nearest_row_is_sought_among_all_rows_or_a_draw_of_very_many() -> None:
    assert len(measured(rows(10, 1), rows(50, 2))["nearest"]) == 60
    ascending = torch.arange(24_000.0).reshape(12_000, 2) / 12_000
    drawn = measured(ascending[:0], ascending)["nearest"]
    assert len(drawn) == 10_000
    assert drawn[:, 0].min() < 0.1
    assert drawn[:, 0].max() > 1.9


def test_scores_need_what_they_require() -> None:
    X = rows(5, 3)
    scorer = Scorer.fit(PREPARED, measured(rows(30, 1), rows(50, 2)))
    with torch.no_grad():
        expected = SCORES["bpd"].statistics(NETWORKS, X)[:, 0]
        torch.testing.assert_close(scorer.novelty(SCORES["bpd"], NETWORKS, X), expected)
        assert scorer.novelty(SCORES["typicality"], NETWORKS, X).shape == (5,)
        for name in ("lpath", "waic", "likelihood_ratio"):
            with pytest.raises(ValueError, match=f"the score '{name}' was not prepared by fit"):
                scorer.novelty(SCORES[name], NETWORKS, X)
