"""The adversary: tells images from decoded mixtures of codes.

Reference: Open-World Learning (thesis), table 2.7; Miyato et al., Spectral Normalization for Generative Adversarial
Networks, arXiv:1802.05957.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.nn.utils.parametrizations import spectral_norm
from torch.optim import Adam, Optimizer

from offmap.train import Batch, descend


class Adversary(nn.Module):
    """Tells images from decoded mixtures of codes; its layers are held to a spectral norm of 1.

    Args:
        channels: Of the first layer, 32 in the thesis.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        widths = [3, channels, 2 * channels]
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            layers += [spectral_norm(nn.Conv2d(before, after, 5, padding=2, bias=False)), nn.BatchNorm2d(after)]
            layers += [nn.ReLU(), nn.MaxPool2d(2)]
        self.layers = nn.Sequential(*layers, nn.Flatten(), spectral_norm(nn.Linear(widths[-1] * 8 * 8, 1)))

    def forward(self, images: Tensor) -> Tensor:
        """A logit an image, above 0 for those taken for real."""
        return self.layers(images).squeeze(1)


class Opponent:
    """An adversary with what it takes to train it, in turns with the decoder that it watches.

    The images that it judged last are the ones that it learns from next, so that they are made once a batch.

    Args:
        channels: Of the adversary's first layer.
        lr: Learning rate of the model that it watches; its own is half of that.
        device: Where torch works.
    """

    def __init__(self, channels: int, lr: float, device: str) -> None:
        self.network = Adversary(channels).to(device)
        self.optimizer = Adam(self.network.parameters(), lr=lr / 2, betas=(0.5, 0.999))
        self._descend = descend(self.optimizer, self._mistaken)
        self._made = torch.empty(0)

    @property
    def state(self) -> dict[str, nn.Module | Optimizer]:
        """What training must keep."""
        return {"adversary": self.network, "adversary_optimizer": self.optimizer}

    def sees_through(self, made: Tensor) -> Tensor:
        r"""The decoder's loss, $-\log H(x^\dagger)$: how surely made-up images are taken for what they are."""
        self._made = made.detach()
        return softplus(-self.network(made)).mean()

    def learn(self, images: Tensor) -> dict[str, Tensor]:
        """Makes one step on real images and those that were judged last."""
        return self._descend((images, self._made))

    def _mistaken(self, batch: Batch) -> dict[str, Tensor]:
        real, made = batch
        return {"adversary": softplus(-self.network(real)).mean() + softplus(self.network(made)).mean()}
