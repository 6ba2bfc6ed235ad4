"""An invertible network after an autoencoder, which learns from pairs what each code stands for."""

from dataclasses import dataclass
from typing import Any

import torch
import zuko
from torch import Tensor
from torch.optim import Adam

from offmap.dependence.disentangle.base import Disentangler
from offmap.dependence.disentangle.codes import Codes, split
from offmap.dependence.disentangle.colour import ColourDigits, paint
from offmap.nets import Standardise
from offmap.parameters import Count, Fraction
from offmap.train import Batch, Batches, descend, train

_DIGIT, _COLOUR = 0, 1


@dataclass(kw_only=True, eq=False, repr=False)
class DIINDisentangler(Disentangler):
    r"""Maps the latent vectors of an autoencoder by a flow $T$ to three Gaussian codes.

    Two images of one digit, or of one colour, have codes of it that are close, and others that are independent:

    $$L = \sum_k \tfrac12 \lVert T(a)_k \rVert^2 + \sum_{k \ne F} \tfrac12 \lVert T(b)_k \rVert^2
    + \frac{\lVert T(b)_F - \rho T(a)_F \rVert^2}{2 (1 - \rho^2)}
    - \log \lvert T'(a) \rvert - \log \lvert T'(b) \rvert$$

    for a pair $(a, b)$ that shares the factor $F$. Here an adversary watches reconstructions, not mixtures: the codes
    do not exist yet when the autoencoder learns.

    Args:
        transforms: Coupling layers of the flow.
        rho: Correlation of the shared code within a pair.
        flow_epochs: Passes over the images to train the flow.

    Reference: Esser, Rombach and Ommer, A Disentangling Invertible Interpretation Network, arXiv:2004.13166.

    Example:
        >>> from offmap.dependence.disentangle import bundled_digits
        >>> digits = bundled_digits(count=64)
        >>> model = DIINDisentangler(epochs=1, flow_epochs=1, transforms=2, channels=4, random_state=0).fit(digits)
        >>> sorted(model.history_)
        ['colour', 'colour_pairs', 'digit', 'digit_pairs', 'reconstruction']
    """

    transforms: Count = 6
    rho: Fraction = 0.9
    flow_epochs: Count = 10

    def _build(self) -> None:
        super()._build()
        width = sum(self._widths)
        self.prepare_ = Standardise(width).to(self.device)
        self.flow_ = zuko.flows.NICE(width, transforms=self.transforms, randmask=True, hidden_features=(256,)).to(
            self.device
        )

    def _train(self, data: ColourDigits) -> None:
        super()._train(data)
        grey, digits, colours = (rows.to(self.device) for rows in (data.grey, data.digits, data.colours))
        with torch.no_grad():
            latent = torch.cat([self.network_["encoder"](some) for some in data.images.to(self.device).split(1024)])
        self.prepare_.fit(latent)
        optimizer = Adam(self.flow_.parameters(), lr=self.lr)
        self.history_ |= train(
            descend(optimizer, self._pair_loss, clip=10.0),
            Batches((latent, grey, digits, colours), self.batch_size),
            epochs=self.flow_epochs,
            state={"flow": self.flow_, "optimizer": optimizer},
            label="flow",
        )

    def _codes(self, encoded: Tensor) -> Codes:
        return split(self.flow_().transform(self.prepare_(encoded)), self._widths)

    def _latent(self, rows: Tensor) -> Tensor:
        return self.flow_().transform.inv(rows) * self.prepare_.scale + self.prepare_.mean

    def _mixture(self, codes: Codes) -> Codes:
        return codes

    def _pair_loss(self, batch: Batch) -> dict[str, Tensor]:
        latent, grey, digits, colours = batch
        with torch.no_grad():
            painted = self.network_["encoder"](paint(grey.roll(1, dims=0), colours))
        # Sorted by digit, the next image has the same digit, but at the last of each kind.
        order = digits.argsort()
        following = order.roll(-1)
        same = digits[order] == digits[following]
        return {
            "digit_pairs": self._pair(latent[order[same]], latent[following[same]], _DIGIT),
            "colour_pairs": self._pair(latent, painted, _COLOUR),
        }

    def _pair(self, a: Tensor, b: Tensor, shared: int) -> Tensor:
        """The loss of pairs that have one factor in common, a number of the latent vector."""
        transform: Any = self.flow_().transform
        (own, stretch), (other, other_stretch) = (transform.call_and_ladj(self.prepare_(rows)) for rows in (a, b))
        codes, others = split(own, self._widths), list(split(other, self._widths))
        others[shared] = (others[shared] - self.rho * codes[shared]) / (1 - self.rho**2) ** 0.5
        squares = own.square().sum(1) + torch.cat(others, dim=1).square().sum(1)
        return (squares / 2 - stretch - other_stretch).mean() / own.shape[1]
