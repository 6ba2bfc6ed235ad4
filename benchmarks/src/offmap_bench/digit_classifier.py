"""A classifier of digits that cannot see colour, to read the digits of decoded images."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import Adam

from offmap.random_state import local_seed
from offmap.train import Batch, Batches, descend, train
from offmap_bench.colour_digits import ColourDigits

_LEAST_CONTRAST = 1e-3


def without_colour(images: Tensor) -> Tensor:
    """Removes the colour: the channels are added, and the sum is scaled to a mean square of 1.

    Example:
        >>> without_colour(torch.tensor([[[[0.3, -0.3]], [[0.1, -0.1]], [[0.0, 0.0]]]]))
        tensor([[[[ 1., -1.]]]])
    """
    grey = images.sum(dim=1, keepdim=True)
    return grey / grey.square().mean((1, 2, 3), keepdim=True).sqrt().clamp(min=_LEAST_CONTRAST)


class DigitClassifier(nn.Module):
    """Classifies the digit of coloured images, whatever their colour.

    Args:
        conv_channels: Channels of the first of two convolutions.

    Example:
        >>> DigitClassifier()(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """

    def __init__(self, conv_channels: int = 16) -> None:
        super().__init__()
        first, second = conv_channels, 2 * conv_channels
        self.layers = nn.Sequential(
            *(nn.Conv2d(1, first, 5, 2, 2), nn.BatchNorm2d(first), nn.ReLU()),
            *(nn.Conv2d(first, second, 5, 2, 2), nn.BatchNorm2d(second), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(second * 8 * 8, 64), nn.ReLU(), nn.Linear(64, 10)),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits of the ten digits."""
        return self.layers(without_colour(images))

    def predict(self, images: Tensor) -> Tensor:
        """Returns the most likely digit of each image."""
        with torch.inference_mode():
            return torch.cat([self(some).argmax(1) for some in images.split(1024)])


def train_classifier(data: ColourDigits, *, epochs: int = 3, seed: int = 0) -> DigitClassifier:
    """Trains a classifier on real images.

    Args:
        data: The images and their digits.
        epochs: Passes over them.
        seed: Seed of the network and of the order of the images.
    """
    with local_seed(seed):
        classifier = DigitClassifier()
        optimizer = Adam(classifier.parameters(), lr=2e-3)

        def objective(batch: Batch) -> dict[str, Tensor]:
            images, digits = batch
            return {"cross_entropy": cross_entropy(classifier(images), digits)}

        train(
            descend(optimizer, objective),
            Batches((data.images, data.digits), 64),
            epochs=epochs,
            state={"classifier": classifier, "optimizer": optimizer},
            label="classifier",
        )
    return classifier
