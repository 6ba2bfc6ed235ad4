"""The variational autoencoder: every number of every code is drawn towards a standard normal of its own."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from offmap.dependence.disentangle.base import Disentangler
from offmap.dependence.disentangle.codes import Codes, split
from offmap.parameters import NonNegative


@dataclass(kw_only=True, eq=False, repr=False)
class VAEDisentangler(Disentangler):
    r"""Codes are draws from $q(z \mid x) = N(\mu, \mathrm{diag}\,\sigma^2)$, held to $N(0, I)$ by their divergence.

    Their noise is their own, and ``noise`` is not used.

    Args:
        beta: Weight of the divergence, in nats; with ``reconstruction=0.5`` and 1 here the loss is the evidence lower
            bound with unit noise.

    Reference: Kingma and Welling, Auto-Encoding Variational Bayes, arXiv:1312.6114.

    Example:
        >>> from offmap.dependence.disentangle import bundled_digits
        >>> digits = bundled_digits(count=64)
        >>> model = VAEDisentangler(epochs=1, channels=4, random_state=0).fit(digits)
        >>> sorted(model.history_)
        ['colour', 'digit', 'kl', 'reconstruction']
    """

    beta: NonNegative = 0.2

    # Spreads and means are the encoder's own, held by the divergence.
    _standardised: ClassVar[bool] = False

    def _encoded_width(self) -> int:
        return 2 * sum(self._widths)

    def _codes(self, encoded: Tensor) -> Codes:
        return split(encoded.chunk(2, dim=1)[0], self._widths)

    def _drawn(self, encoded: Tensor) -> Codes:
        mean, log_var = encoded.chunk(2, dim=1)
        return split(mean + (0.5 * log_var).exp() * torch.randn_like(mean), self._widths)

    def _penalties(self, encoded: Tensor, codes: Codes) -> dict[str, Tensor]:
        mean, log_var = encoded.chunk(2, dim=1)
        kl = 0.5 * (mean.square() + log_var.expm1() - log_var).sum(1)
        return {"kl": self.beta * kl.mean()}
