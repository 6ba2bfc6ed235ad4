"""Statistics of images against plain loops, and what each is there to see."""

import pytest
import torch
from torch.testing import assert_close

from offmap.density.image_statistics import (
    brightness_by_place,
    energy_by_place,
    haar_energies,
    histograms,
    log_energy,
    residual_size,
    tone_and_detail,
)
from offmap.random_state import local_seed


def describe(X: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    return torch.cat(
        [
            *(tone_and_detail(X), histograms(X), tone_and_detail(residual), residual_size(residual)),
            *(brightness_by_place(X), energy_by_place(residual)),
        ],
        dim=1,
    )


def images(count: int = 6, shape: tuple[int, ...] = (3, 12, 10)) -> torch.Tensor:
    with local_seed(0):
        return torch.rand(count, *shape)


def test_haar_energies_are_those_of_a_loop() -> None:
    X = images(2, (2, 4, 6))
    found = haar_energies(X, scales=1)
    for place, image in enumerate(X):
        sums = torch.zeros(3)
        for channel in image:
            for row in range(0, 4, 2):
                for column in range(0, 6, 2):
                    (a, b), (c, d) = channel[row : row + 2, column : column + 2]
                    sums += torch.stack([a + b - c - d, a - b + c - d, a - b - c + d]).square() / 16
        assert_close(found[place], log_energy(sums / (2 * 2 * 3)))


def test_haar_energies_split_the_variance_by_scale() -> None:
    """Over a side of a power of two the bands are orthogonal: energies and the coarsest mean add up."""
    X = images(5, (1, 8, 8))
    total = X.square().mean((1, 2, 3))
    bands = haar_energies(X, scales=3).exp() - (1 / 1020) ** 2
    assert_close(bands.sum(1) + X.mean((1, 2, 3)).square(), total, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 17, 16), (2, 1, 5), (1, 28, 28)])
def test_images_of_any_size_are_described(shape: tuple[int, ...]) -> None:
    X = images(3, shape)
    found = describe(X, X - 0.5)
    assert found.isfinite().all()
    assert found.shape[0] == 3


def test_a_row_is_described_from_itself_alone() -> None:
    X = images()
    residual = X - X.mean(0)
    assert_close(describe(X, residual)[2:3], describe(X[2:3], residual[2:3]))


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.rot90(2, (2, 3)),
        lambda X: 0.9 * X,
        lambda X: X + 0.05,
        lambda X: (X + X.roll(1, 3)) / 2,
        lambda X: X[:, [1, 2, 0]],
        lambda X: X.flatten(2)[:, :, torch.randperm(120, generator=torch.Generator().manual_seed(0))].reshape(X.shape),
    ],
    ids=["turned", "fainter", "brighter", "blurred", "other colours", "shuffled"],
)
def test_no_plain_change_of_an_image_goes_unseen(change: object) -> None:
    assert callable(change)
    X = images()
    # A smooth ramp in each colour, so that place, colour and scale all matter.
    X = 0.1 * X + torch.linspace(0, 0.5, 12)[:, None] * torch.tensor([1.0, 0.6, 0.3])[:, None, None]
    before, after = describe(X, 0.1 * X), describe(change(X), 0.1 * change(X))
    assert ((before - after).abs().mean(0) > 1e-2).any()


def test_histograms_count_pixels_and_steps() -> None:
    X = torch.zeros(1, 1, 4, 4)
    X[..., 2:] = 1.0
    found = histograms(X).exp() - 1 / 16
    expected = torch.zeros(15)
    # Half the pixels lie in the lowest bin and half in the highest; 4 of 24 steps are edges, the others nothing.
    expected[[0, 7, 8, 12, 13, 14]] = torch.tensor([0.5, 0.5, 20 / 24, 4 / 24, 0.5, 0.5])
    assert_close(found[0], expected, atol=1e-5, rtol=0)


def test_colour_is_told_from_brightness() -> None:
    grey = images(4, (1, 16, 16)).expand(-1, 3, -1, -1)
    tinted = grey * torch.tensor([1.3, 0.8, 0.5])[:, None, None]
    assert (tone_and_detail(grey)[:, 15:] + 1 < tone_and_detail(tinted)[:, 15:]).all()
