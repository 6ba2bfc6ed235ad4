"""Random crops and mirror images: what they cut, and that every network that is to be trained on them is."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from offmap.collaborative import RatioDetector, SeparateRatioDetector
from offmap.collaborative.augmentation import RandomCrop


@settings(deadline=None, max_examples=20)
@given(side=st.integers(8, 20), channels=st.sampled_from([1, 3]), flip=st.booleans(), seed=st.integers(0, 99))
def test_every_image_is_a_crop_of_its_padded_self_or_the_mirror_image_of_one(
    side: int, channels: int, flip: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    images, margin = torch.rand(6, channels, side, side + 3), side // 8
    for image, found in zip(images, RandomCrop(flip).train()(images), strict=True):
        padded = torch.zeros(channels, side + 2 * margin, side + 3 + 2 * ((side + 3) // 8))
        padded[:, margin : margin + side, (side + 3) // 8 : (side + 3) // 8 + side + 3] = image
        crops = [
            padded[:, down : down + side, right : right + side + 3]
            for down in range(2 * margin + 1)
            for right in range(2 * ((side + 3) // 8) + 1)
        ]
        candidates = crops + [crop.flip(2) for crop in crops] * flip
        assert any(torch.equal(found, candidate) for candidate in candidates)


def test_places_and_mirror_images_are_drawn_for_each_image_and_only_in_training() -> None:
    torch.manual_seed(0)
    crop, image = RandomCrop(flip=True), torch.rand(1, 1, 16, 16)
    drawn = crop(image.expand(2000, -1, -1, -1))
    kinds, counts = torch.unique(drawn.flatten(1), dim=0, return_counts=True)
    assert len(kinds) == 5 * 5 * 2  # two pixels of padding on each side, and the mirror image of each
    assert counts.min() > 15
    assert crop.eval()(image) is image


def dots(count: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Images of one bright bar: at the left for entity 0, at the right for entity 1; 2 and 3 are noise."""
    rng = np.random.default_rng(seed)
    entities = np.arange(count) % 4
    images = 0.3 * rng.random((count, 16, 16))
    images[entities == 0, 2:14, 3:6] = 1.0
    images[entities == 1, 2:14, 10:13] = 1.0
    return images, entities


SMALL: dict[str, Any] = {"conv_channels": 2, "hidden": (16,), "epochs": 8, "lr": 1e-2, "calibration": 0.0}


def gap(detector: Any) -> float:
    """How much more familiar images of entity 0 are to it than their mirror images are."""
    images, entities = dots(80, seed=1)
    own = images[entities == 0]
    return float((detector.familiarity(own, [0]) - detector.familiarity(own[:, :, ::-1], [0])).mean())


@pytest.mark.parametrize(
    "detector",
    [
        RatioDetector(head="concat", embedding="learned", seed_entities=4, tune_embeddings=False, **SMALL),
        SeparateRatioDetector(**SMALL),
    ],
    ids=["concat", "separate"],
)
def test_a_network_that_has_seen_mirror_images_does_not_tell_left_from_right(detector: Any) -> None:
    images, entities = dots(400, seed=0)
    gaps = {}
    for augment in ("none", "crop", "crop_flip"):
        detector.set_params(augment=augment, random_state=0).fit(images, entities)
        gaps[augment] = gap(detector)
    assert min(gaps["none"], gaps["crop"]) > 1.2
    assert abs(gaps["crop_flip"]) < 0.7


def test_the_network_of_seed_entities_sees_changed_images_too() -> None:
    images, entities = dots(400, seed=0)
    left, right = (torch.from_numpy(images[entities == entity]).float().unsqueeze(1) for entity in (0, 1))
    apart = {}
    for augment in ("crop", "crop_flip"):
        detector = RatioDetector(
            head="concat", embedding="learned", seed_entities=4, augment=augment, random_state=0, **SMALL
        ).fit(images, entities)
        values = detector.solver_.get_submodule("values")
        with torch.no_grad():
            apart[augment] = float((values.ratios(left) - values.ratios(right))[:, 0].mean())  # type: ignore[operator] # SeedRatios
    assert apart["crop"] > 1.2
    assert abs(apart["crop_flip"]) < 0.7


@pytest.mark.parametrize("cls", [RatioDetector, SeparateRatioDetector])
def test_rows_that_are_no_images_cannot_be_augmented(cls: Any) -> None:
    rows, entities = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 4
    with pytest.raises(ValueError, match='augment="crop" needs images'):
        cls(augment="crop", random_state=0).fit(rows, entities)
