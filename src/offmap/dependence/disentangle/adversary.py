"""An adversary that compares decoded mixtures of codes with real data.

Reference: Open-World Learning (thesis), table 2.7; Miyato et al., Spectral Normalization for Generative Adversarial
Networks, arXiv:1802.05957.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm
from torch.optim import Adam, Optimizer

from offmap.ratio import loss_on_p, ratio_loss
from offmap.train import Batch, descend

_SMALLEST_SIDE = 4


def discriminator(shape: Sequence[int], conv_channels: int, hidden: Sequence[int]) -> nn.Sequential:
    """Makes a network from images ``(n, c, h, w)`` or rows ``(n, d)`` to one logit each, high for real data.

    The spectral norm of its layers is held at 1.

    Args:
        shape: Shape of one image or row.
        conv_channels: Channels of the first of two convolutions, for images.
        hidden: Widths of the hidden layers, for rows.
    """
    layers: list[nn.Module] = []
    if len(shape) == 1:
        for before, after in pairwise([*shape, *hidden]):
            layers += [spectral_norm(nn.Linear(before, after)), nn.ReLU()]
        return nn.Sequential(*layers, spectral_norm(nn.Linear([*shape, *hidden][-1], 1)), nn.Flatten(0))
    if min(shape[1:]) < _SMALLEST_SIDE:
        raise ValueError(f"adversary=True needs images of at least {_SMALLEST_SIDE} pixels per side; got {shape[1:]}")
    widths = [shape[0], conv_channels, 2 * conv_channels]
    for before, after in pairwise(widths):
        layers += [spectral_norm(nn.Conv2d(before, after, 5, padding=2, bias=False)), nn.BatchNorm2d(after)]
        layers += [nn.ReLU(), nn.MaxPool2d(2)]
    flat = widths[-1] * (shape[1] // 4) * (shape[2] // 4)
    return nn.Sequential(*layers, nn.Flatten(), spectral_norm(nn.Linear(flat, 1)), nn.Flatten(0))


class Adversary:
    """A discriminator with its optimiser, trained in turns with a decoder.

    It learns from the data that it scored last, so that they are decoded once per batch.

    Args:
        network: The discriminator.
        lr: Learning rate of the decoder; that of the discriminator is half of it.
    """

    def __init__(self, network: nn.Module, lr: float) -> None:
        self.network = network
        self.optimizer = Adam(network.parameters(), lr=lr / 2, betas=(0.5, 0.999))
        self._descend = descend(self.optimizer, self._loss)
        self._decoded = torch.empty(0)

    @property
    def state(self) -> dict[str, nn.Module | Optimizer]:
        """What the training loop must know of."""
        return {"adversary": self.network, "adversary_optimizer": self.optimizer}

    def decoder_loss(self, decoded: Tensor) -> Tensor:
        r"""Returns the decoder's loss $-\log H(x^\dagger)$, low when decoded data are taken for real."""
        self._decoded = decoded.detach()
        return loss_on_p(self.network(decoded)).mean()

    def learn(self, real: Tensor) -> dict[str, Tensor]:
        """Makes one step on real data and the decoded data that were scored last."""
        return self._descend((real, self._decoded))

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        real, decoded = batch
        return {"adversary": ratio_loss(self.network(real), self.network(decoded))}
