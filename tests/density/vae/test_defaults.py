"""What is chosen for rows of each kind."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from offmap.density.usual import Usual

CHOICES = ("score", "network", "hidden", "shift", "steps", "patience")


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((7,), ("nearest", "mlp", (64,), 8, 2_000, 10)),
        ((15, 40, 1), ("nearest", "mlp", (256, 128), 8, 10_000, None)),
        ((15, 15, 3), ("nearest", "mlp", (256, 128), 25, 10_000, None)),
        ((16, 16, 1), ("views", "conv", (256, 128), 8, 10_000, None)),
        ((32, 16, 3), ("views", "dcgan", (256, 128), 25, 10_000, None)),
    ],
)
def test_choices_follow_from_the_shape(shape: tuple[int, ...], expected: tuple[object, ...]) -> None:
    assert tuple(getattr(Usual(shape), name) for name in CHOICES) == expected


@pytest.mark.parametrize("rank", [1, 2, 5, 40])
def test_latent_dimensions_hold_most_of_the_variance(rank: int) -> None:
    rng = np.random.default_rng(rank)
    rows = rng.normal(size=(400, rank)) @ rng.normal(size=(rank, 60)) * rng.uniform(0.1, 100, size=60)
    shares = PCA().fit(StandardScaler().fit_transform(rows)).explained_variance_ratio_.cumsum()
    expected = np.clip(np.searchsorted(shares, 0.9) + 1, 2, 32)
    assert Usual((60,)).latent(torch.from_numpy(rows).float()) == expected


def test_images_have_the_latent_dimensions_of_the_papers_whatever_they_show() -> None:
    assert [Usual((8, 8, c)).latent(torch.zeros(3, c, 8, 8)) for c in (1, 3)] == [10, 100]
