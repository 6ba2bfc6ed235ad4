"""What the detector of image statistics notices, and what it compares with."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

import offmap
from offmap.density import TextureDetector
from offmap.density.image_statistics import brightness_by_place, histograms, tone_and_detail
from offmap.density.reference_distance import LocalDistanceRatio, NormalScores

Images = NDArray[np.float32]


def clouds(count: int, seed: int, channels: int = 1) -> Images:
    """Smooth random images, lighter at the top."""
    rng = np.random.default_rng(seed)
    smooth = gaussian_filter(rng.normal(size=(count, 20, 20, channels)), (0, 2, 2, 0))
    ramp = np.linspace(0.7, 0.3, 20)[:, None, None]
    return np.clip(ramp + smooth, 0, 1).astype(np.float32)


def test_novelty_is_the_local_ratio_of_the_statistics_of_training_images() -> None:
    images = clouds(300, 0)
    detector = TextureDetector(n_neighbors=4, random_state=0).fit(images)
    assert detector.reference_statistics_.shape == (270, 11 + 15 + 16)
    ranks = NormalScores.fit(detector.reference_statistics_)
    ratio = LocalDistanceRatio.fit(ranks(torch.from_numpy(detector.reference_statistics_)), 4)
    X = torch.from_numpy(clouds(20, 1)).permute(0, 3, 1, 2)
    statistics = torch.cat([tone_and_detail(X), histograms(X), brightness_by_place(X)], dim=1)
    np.testing.assert_allclose(detector.novelty(clouds(20, 1)), ratio(ranks(statistics)).numpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "change",
    [
        lambda X: X[:, ::-1],
        lambda X: 1 - X,
        lambda X: 0.5 * X,
        lambda X: np.clip(X + 0.1 * np.random.default_rng(0).normal(size=X.shape), 0, 1),
        lambda X: gaussian_filter(X, (0, 2, 2, 0)),
        lambda X: np.full_like(X, 0.5),
    ],
    ids=["upside down", "negative", "faint", "noisy", "blurred", "constant"],
)
def test_changed_images_are_novel_on_either_side(change: object, channels: int) -> None:
    assert callable(change)
    detector = TextureDetector(random_state=0).fit(clouds(500, 0, channels))
    test = clouds(100, 1, channels)
    assert np.mean(detector.predict(test) == -1) < 0.15
    assert np.mean(detector.predict(change(test)) == -1) > 0.8


def test_images_may_be_flat_and_very_many_are_cut() -> None:
    images = clouds(300, 0)
    shaped = TextureDetector(random_state=0, max_reference=120).fit(images)
    flat = TextureDetector(random_state=0, max_reference=120, image_shape=(20, 20)).fit(images.reshape(300, -1))
    assert len(shaped.reference_statistics_) == 120
    assert shaped.novelty(images).tobytes() == flat.novelty(images.reshape(300, -1)).tobytes()


def test_reference_images_are_drawn_from_all_of_x() -> None:
    """Images may come sorted by brightness."""
    images = np.linspace(0, 1, 600)[:, None, None] * np.ones((1, 16, 16))
    brightness = TextureDetector(random_state=0, max_reference=60).fit(images).reference_statistics_[:, 0]
    assert brightness.min() < 0.1
    assert brightness.max() > 0.9


def test_rows_that_are_no_images_are_described_by_their_features() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 3))
    detector = TextureDetector(random_state=0).fit(rows)
    assert detector.reference_statistics_.shape == (270, 3)
    assert detector.predict([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]]).tolist() == [1, -1]


def test_it_is_saved_with_what_it_compares_with(tmp_path: Path) -> None:
    images = clouds(200, 0)
    detector = TextureDetector(random_state=0).fit(images)
    detector.save(tmp_path / "model")
    assert offmap.load(tmp_path / "model").novelty(images).tobytes() == detector.novelty(images).tobytes()
