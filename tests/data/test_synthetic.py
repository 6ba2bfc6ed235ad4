"""Synthetic images: their values, not only their shapes."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from offmap.data import constant_images, uniform_noise

MAKERS = pytest.mark.parametrize("make", [uniform_noise, constant_images])


def test_noise_is_uniform_and_independent() -> None:
    noise = uniform_noise(200, (16, 16))
    counts = np.bincount(noise.ravel(), minlength=256)
    assert stats.chisquare(counts).pvalue > 0.01
    left, right = noise[:, :, :-1].ravel().astype(float), noise[:, :, 1:].ravel().astype(float)
    assert abs(np.corrcoef(left, right)[0, 1]) < 0.02


@pytest.mark.parametrize("shape", [(5, 4), (5, 4, 3)])
def test_constant_images_have_one_level_each(shape: tuple[int, ...]) -> None:
    images = constant_images(300, shape)
    assert images.shape == (300, *shape)
    assert (images == images[:, :1, :1]).all()
    levels = images[:, 0, 0].reshape(300, -1)
    assert stats.kstest(levels.ravel() / 255, "uniform").pvalue > 0.01
    if levels.shape[1] == 3:
        assert abs(np.corrcoef(levels[:, 0], levels[:, 1])[0, 1]) < 0.2


@MAKERS
def test_seed_decides(make: Callable[..., np.ndarray]) -> None:
    assert np.array_equal(make(9, (3, 3), seed=1), make(9, (3, 3), seed=1))
    assert not np.array_equal(make(9, (3, 3), seed=1), make(9, (3, 3), seed=2))
    assert make(9, (3, 3)).dtype == np.uint8


@MAKERS
def test_bad_sizes_are_refused(make: Callable[..., np.ndarray]) -> None:
    with pytest.raises(ValueError, match="n must be at least 1"):
        make(0, (3, 3))
    for shape in ((3,), (3, 0), (1, 2, 3, 4)):
        with pytest.raises(ValueError, match="shape must be"):
            make(1, shape)
