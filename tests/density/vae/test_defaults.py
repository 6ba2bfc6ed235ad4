"""The defaults for rows of each shape."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from offmap.density.vae.defaults import Defaults

CHOICES = ("score", "network", "hidden", "shift", "steps", "patience")


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((7,), ("bpd", "mlp", (64,), 8, 2_000, 10)),
        ((15, 40, 1), ("lpath", "mlp", (256, 128), 8, 10_000, None)),
        ((15, 15, 3), ("lpath", "mlp", (256, 128), 25, 10_000, None)),
        ((16, 16, 1), ("lpath", "conv", (256, 128), 8, 10_000, None)),
        ((32, 16, 3), ("lpath", "dcgan", (256, 128), 25, 10_000, None)),
    ],
)
def test_defaults_follow_from_the_shape(shape: tuple[int, ...], expected: tuple[object, ...]) -> None:
    assert tuple(getattr(Defaults(shape), name) for name in CHOICES) == expected


@pytest.mark.parametrize("rank", [1, 2, 5, 40])
def test_latent_dimensions_hold_most_of_the_variance(rank: int) -> None:
    rng = np.random.default_rng(rank)
    rows = rng.normal(size=(400, rank)) @ rng.normal(size=(rank, 60)) * rng.uniform(0.1, 100, size=60)
    shares = PCA().fit(StandardScaler().fit_transform(rows)).explained_variance_ratio_.cumsum()
    expected = np.clip(np.searchsorted(shares, 0.9) + 1, 2, 32)
    assert Defaults((60,)).latent_dim(torch.from_numpy(rows).float()) == expected


def test_images_have_the_latent_dimensions_of_the_papers_whatever_they_show() -> None:
    assert [Defaults((8, 8, c)).latent_dim(torch.zeros(3, c, 8, 8)) for c in (1, 3)] == [10, 100]
