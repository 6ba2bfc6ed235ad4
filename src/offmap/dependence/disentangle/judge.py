"""Who reads the digits of made-up images: a classifier that learnt from real ones and cannot see colour."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import Adam

from offmap.dependence.disentangle.colour import ColourDigits
from offmap.random_state import local_seed
from offmap.train import Batch, Batches, descend, train

_LEAST_CONTRAST = 1e-3


def handwriting(images: Tensor) -> Tensor:
    """Takes the colour away: the channels are added, and the sum is scaled to a mean square of 1.

    Example:
        >>> handwriting(torch.tensor([[[[0.3, -0.3]], [[0.1, -0.1]], [[0.0, 0.0]]]]))
        tensor([[[[ 1., -1.]]]])
    """
    grey = images.sum(dim=1, keepdim=True)
    return grey / grey.square().mean((1, 2, 3), keepdim=True).sqrt().clamp(min=_LEAST_CONTRAST)


class DigitJudge(nn.Module):
    """Names the digit of coloured images, whatever their colour.

    Args:
        channels: Of the first of two convolutions.

    Example:
        >>> DigitJudge()(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(1, channels, 5, 2, 2), nn.BatchNorm2d(channels), nn.ReLU()),
            *(nn.Conv2d(channels, 2 * channels, 5, 2, 2), nn.BatchNorm2d(2 * channels), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(2 * channels * 8 * 8, 64), nn.ReLU(), nn.Linear(64, 10)),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Logits of the ten digits."""
        return self.layers(handwriting(images))

    def read(self, images: Tensor) -> Tensor:
        """The likeliest digit of each image."""
        with torch.inference_mode():
            return torch.cat([self(some).argmax(1) for some in images.split(1024)])


def learn_to_judge(data: ColourDigits, *, epochs: int = 3, seed: int = 0) -> DigitJudge:
    """Trains a judge on real images.

    Args:
        data: The images and their digits.
        epochs: Passes over them.
        seed: Of the network and the order of the images.
    """
    with local_seed(seed):
        judge = DigitJudge()
        optimizer = Adam(judge.parameters(), lr=2e-3)

        def objective(batch: Batch) -> dict[str, Tensor]:
            images, digits = batch
            return {"cross_entropy": cross_entropy(judge(images), digits)}

        train(
            descend(optimizer, objective),
            Batches((data.images, data.digits), 64),
            epochs=epochs,
            state={"judge": judge, "optimizer": optimizer},
            label="judge",
        )
    return judge
