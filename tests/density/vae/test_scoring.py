"""What scores are shown of normal rows, and which they are."""

import numpy as np
import pytest
import torch

from offmap.density.jury import Jury, survey
from offmap.density.scores import SCORES, Models
from offmap.density.vae import VAE
from offmap.random_state import local_seed

with local_seed(0):
    MODELS = Models(VAE((2,), latent=2, hidden=(4,), noise="gaussian").eval())


def rows(count: int, seed: int) -> torch.Tensor:
    return torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))


def surveyed(held_out: torch.Tensor, training: torch.Tensor) -> dict[str, np.ndarray]:
    with local_seed(0):
        return survey(("bpd", "typicality", "nearest"), MODELS, held_out, training)


@pytest.mark.parametrize(("kept", "expected"), [(0, 1_000), (30, 1_000), (1_500, 1_500), (2_500, 2_000)])
def test_few_rows_kept_aside_are_joined_by_training_rows_and_many_are_cut(kept: int, expected: int) -> None:
    held_out, training = rows(kept, 1), rows(1_200, 2)
    normal = surveyed(held_out, training)
    assert normal.keys() == {"typicality", "nearest"}
    with torch.no_grad():
        seen = SCORES["typicality"].statistics(MODELS, torch.cat([held_out, training])[:expected])
    np.testing.assert_allclose(normal["typicality"], seen.numpy(), rtol=1e-5)


def test_the_nearest_row_is_sought_among_all_rows_or_a_draw_of_very_many() -> None:
    assert len(surveyed(rows(10, 1), rows(50, 2))["nearest"]) == 60
    ascending = torch.arange(24_000.0).reshape(12_000, 2) / 12_000
    drawn = surveyed(ascending[:0], ascending)["nearest"]
    assert len(drawn) == 10_000
    assert drawn[:, 0].min() < 0.1
    assert drawn[:, 0].max() > 1.9


def test_judges_need_what_their_scores_need() -> None:
    X = rows(5, 3)
    jury = Jury.shown(surveyed(rows(30, 1), rows(50, 2)))
    with torch.no_grad():
        expected = SCORES["bpd"].statistics(MODELS, X)[:, 0]
        torch.testing.assert_close(jury.novelty("bpd", MODELS, X), expected)
        assert jury.novelty("typicality", MODELS, X).shape == (5,)
        for name in ("lpath", "waic", "likelihood_ratio"):
            with pytest.raises(ValueError, match=f"score '{name}' needs to be made ready"):
                jury.novelty(name, MODELS, X)
