"""Coloured digits: the images, the classifier that reads them, and the scores of swapped codes."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from offmap.data import DataNotFound, load
from offmap_bench.code_swaps import draw_partners, score_plain, score_swaps
from offmap_bench.colour_digits import ColourDigits, bundled_digits, colour_digits, paint, to_images, to_pixels
from offmap_bench.digit_classifier import DigitClassifier, train_classifier, without_colour

Codes = dict[str, NDArray[np.float32]]


class Perfect:
    """A model whose codes are the truth: the handwriting in one group, the colour in another."""

    def __init__(self, data: ColourDigits) -> None:
        self.data = data

    def encode(self, X: Any) -> Codes:
        assert np.array_equal(X, self.data.pixels)
        return {"digit": self.data.grey.flatten(1).numpy(), "colour": self.data.colours.numpy()}

    def decode(self, codes: Any) -> NDArray[np.float32]:
        grey, colours = torch.from_numpy(codes["digit"]).view(-1, 1, 32, 32), torch.from_numpy(codes["colour"])
        return to_pixels(paint(grey, colours))


class Stubborn:
    """A model whose style code says everything, so that the other codes change nothing."""

    def __init__(self, data: ColourDigits) -> None:
        self.data = data

    def encode(self, X: Any) -> Codes:
        own = self.data
        return {"digit": own.digits[:, None].float().numpy(), "colour": own.colours.numpy(), "style": X}

    def decode(self, codes: Any) -> NDArray[np.float32]:
        return codes["style"]


@pytest.fixture(scope="module")
def classifier() -> DigitClassifier:
    return train_classifier(bundled_digits("train"), epochs=4)


@pytest.fixture(scope="module")
def tested() -> ColourDigits:
    return bundled_digits("test", seed=3)


def test_images_are_grey_ones_times_their_colours(tested: ColourDigits) -> None:
    assert tested.images.shape == (449, 3, 32, 32)
    assert tested.grey.min() == -1
    assert tested.grey.max() == 1
    for row in (0, 7):
        for channel in range(3):
            expected = tested.grey[row, 0] * tested.colours[row, channel]
            torch.testing.assert_close(tested.images[row, channel], expected)
    assert 0 <= tested.colours.min() < 0.05
    assert 0.95 < tested.colours.max() <= 1


def test_training_and_test_digits_have_no_image_in_common() -> None:
    train, test = bundled_digits("train").grey.flatten(1).numpy(), bundled_digits("test").grey.flatten(1).numpy()
    assert len(train) + len(test) == 1797
    assert len(np.unique(np.concatenate([train, test]), axis=0)) == 1797


def test_the_seed_decides_the_colours_and_the_draw() -> None:
    first, again, other = (bundled_digits(count=50, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.images, again.images)
    assert not torch.equal(first.grey, other.grey)


@pytest.mark.data
def test_mnist_gets_a_margin_and_keeps_its_pixels() -> None:
    try:
        images = load("mnist", "test").X
    except DataNotFound as error:
        pytest.skip(str(error))
    grey = colour_digits("test", count=200, seed=0).grey
    assert (grey[:, 0, :2] == -1).all()
    rows = np.random.default_rng(0).permutation(len(images))[:200]
    inner = torch.from_numpy(images[rows].astype(np.float32)) / 255 * 2 - 1
    torch.testing.assert_close(grey[:, 0, 2:-2, 2:-2], inner)


@pytest.mark.parametrize("count", [0, 2000])
def test_more_images_than_there_are_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match="count must be from 1 to 1348, the number of images"):
        bundled_digits(count=count)


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(ValueError, match="split must be 'train' or 'test'; got 'dev'"):
        colour_digits("dev")


@given(st.floats(0.05, 1), st.tuples(*[st.floats(0.05, 1)] * 3))
def test_the_handwriting_does_not_depend_on_the_colour(brightness: float, colour: tuple[float, ...]) -> None:
    grey = torch.linspace(-1, 1, 64).view(1, 1, 8, 8)
    painted = paint(grey, brightness * torch.tensor([colour]))
    torch.testing.assert_close(without_colour(painted), grey / grey.square().mean().sqrt())


def test_the_classifier_reads_digits_of_any_colour(classifier: DigitClassifier, tested: ColourDigits) -> None:
    assert (classifier.predict(tested.images) == tested.digits).float().mean() > 0.93
    assert torch.equal(
        classifier.predict(tested.images[:20]), classifier.predict(tested.repainted(tested.colours.flip(0)))[:20]
    )


def test_partners_have_another_digit_and_all_of_these_are_as_likely() -> None:
    digits = torch.tensor([0] * 30 + [1] * 10 + [2] * 5 + [7] * 15)[torch.randperm(60)]
    counts = torch.zeros(60, 60)
    for seed in range(400):
        lent, colour = draw_partners(digits, seed)
        assert (digits[lent] != digits).all()
        assert sorted(colour.tolist()) == list(range(60))
        counts[torch.arange(60), lent] += 1
    row = int((digits == 0).nonzero()[0])
    others = counts[row][digits != 0]
    assert len(others) == 30
    assert others.min() > 2
    assert others.max() < 32


def test_partners_of_one_digit_only_are_refused() -> None:
    with pytest.raises(ValueError, match="digits must have at least two values"):
        draw_partners(torch.ones(5, dtype=torch.long))


def test_perfect_codes_have_perfect_control(classifier: DigitClassifier, tested: ColourDigits) -> None:
    found = score_swaps(Perfect(tested), tested, classifier)
    assert found.acc_d > 0.9
    assert found.acc_c > 0.9
    assert found.res_l2 < 1e-6


def test_codes_that_change_nothing_have_none(classifier: DigitClassifier, tested: ColourDigits) -> None:
    found = score_swaps(Stubborn(tested), tested, classifier)
    assert found.acc_d < 0.03
    assert found.acc_c > 0.9
    colours = tested.colours[draw_partners(tested.digits, 0).colour]
    squares = [
        sum(float(((mine - theirs) * image).square().sum()) for mine, theirs in zip(own, other, strict=True))
        for own, other, image in zip(tested.colours, colours, tested.grey, strict=True)
    ]
    assert found.res_l2 == pytest.approx(np.mean(squares), rel=1e-4)


class Dim(Perfect):
    """A model that decodes every image at half its brightness."""

    def decode(self, codes: Any) -> NDArray[np.float32]:
        return super().decode(codes) * np.float32(0.5)


def test_what_is_lost_without_a_swap_is_the_error_of_decoding(
    classifier: DigitClassifier, tested: ColourDigits
) -> None:
    assert score_plain(Perfect(tested), tested, classifier).l2_plain == 0
    found = score_plain(Dim(tested), tested, classifier)
    assert found.acc_plain > 0.9
    squares = [float((image / 2).square().sum()) for image in tested.images]
    assert found.l2_plain == pytest.approx(np.mean(squares), rel=1e-4)


def test_pixels_are_images_with_the_channels_last(tested: ColourDigits) -> None:
    assert tested.pixels.shape == (449, 32, 32, 3)
    assert torch.equal(to_images(tested.pixels), tested.images)
