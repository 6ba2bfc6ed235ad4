"""What all disentangling models share: three codes of an image, two of them taught, decoded together."""

from abc import ABC
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import Adam, Optimizer

from offmap import parameters
from offmap.dependence.disentangle import networks
from offmap.dependence.disentangle.adversary import Opponent
from offmap.dependence.disentangle.codes import Codes, split
from offmap.dependence.disentangle.colour import SIDE, ColourDigits
from offmap.parameters import Count, NonNegative, Positive
from offmap.random_state import draw_seed, local_seed
from offmap.train import Batch, Batches, History, Step, descend, train

_CHUNK = 512
_COLOUR_WEIGHT = 10.0


@dataclass(kw_only=True, eq=False, repr=False)
class Disentangler(BaseEstimator, ABC):
    r"""Encodes an image as digit, colour and style, each in a code of its own, and decodes any mixture of codes.

    $$L = \lambda \lVert D(z_d, z_c, z_s) - x \rVert^2 + \mathrm{CE}(F_d(z_d), y_d)
    + 10 \lVert F_c(z_c) - y_c \rVert^2 + \text{what the method adds}$$

    Digit and colour codes are taught by their labels alone, for the reconstruction would fill them with style too.
    Noise is added to the codes, which are standardised, while they learn: a code without noise may say anything in its
    last decimals. Nothing here keeps the style from repeating the digit and the colour; that is what the methods add.
    With an ``adversary``, decoded mixtures of codes must moreover look like images.

    Args:
        digit_width: Numbers in the digit code.
        colour_width: Numbers in the colour code.
        style_width: Numbers in the style code.
        channels: Of the first convolution; the others have 2, 4 and 8 times as many.
        noise: Spread of the noise beside that of the codes, which is 1.
        reconstruction: Weight $\lambda$ of the squared error, which is summed over pixels and channels.
        adversary: Whether mixtures of codes are held against real images.
        epochs: Passes over the images.
        batch_size: Images a step.
        lr: Learning rate of encoder, decoder and heads.
        random_state: Seed; with one, the same images give the same model.
        device: Where torch works, such as "cpu" or "cuda".
    """

    digit_width: Count = 32
    colour_width: Count = 32
    style_width: Count = 64
    channels: Count = 16
    noise: NonNegative = 0.7
    reconstruction: Positive = 0.1
    adversary: bool = False
    epochs: Count = 10
    batch_size: Count = 128
    lr: Positive = 2e-3
    random_state: int | None = None
    device: str = "cpu"

    def fit(self, data: ColourDigits) -> Self:
        """Learns from images, their digits and their colours."""
        parameters.check(self)
        if len(data) < 2:
            raise ValueError(f"data must hold at least 2 images; got {len(data)}")
        self.history_: History = {}
        with local_seed(draw_seed(self.random_state)):
            self._build()
            self._train(data)
        return self

    def encode(self, images: Tensor) -> Codes:
        """The codes of images ``(n, 3, 32, 32)``; each image's depend on it alone."""
        check_is_fitted(self, "network_")
        if images.ndim != 4 or images.shape[1:] != (3, SIDE, SIDE) or not len(images):
            raise ValueError(f"images must be (n, 3, {SIDE}, {SIDE}), n at least 1; got {tuple(images.shape)}")
        with torch.inference_mode():
            parts = [self._codes(self.network_["encoder"](some)) for some in _chunks(images.to(self.device))]
        return Codes(*(torch.cat(code)[: len(images)].cpu() for code in zip(*parts, strict=True)))

    def decode(self, codes: Codes) -> Tensor:
        """The images ``(n, 3, 32, 32)`` in [-1, 1] that codes stand for."""
        check_is_fitted(self, "network_")
        if (found := tuple(code.shape[-1] for code in codes)) != self._widths:
            raise ValueError(f"codes must have the widths {self._widths}; got {found}")
        rows = codes.joined()
        with torch.inference_mode():
            parts = [self.network_["decoder"](self._latent(some)) for some in _chunks(rows.to(self.device))]
        return torch.cat(parts)[: len(rows)].cpu()

    @property
    def _widths(self) -> tuple[int, int, int]:
        return self.digit_width, self.colour_width, self.style_width

    # Whether the encoder gives codes of mean 0 and variance 1, which the noise is measured by.
    _standardised: ClassVar[bool] = True

    def _build(self) -> None:
        """Makes the networks; a method that needs more of them adds its own."""
        self.network_ = nn.ModuleDict(
            {
                "encoder": networks.encoder(self._encoded_width(), self.channels, standardised=self._standardised),
                "decoder": networks.decoder(sum(self._widths), self.channels),
                "digit": networks.digit_head(self.digit_width),
                "colour": networks.colour_head(self.colour_width),
            }
        ).to(self.device)
        self.network_.to(memory_format=torch.channels_last)  # type: ignore[call-overload] # not in the stub

    def _encoded_width(self) -> int:
        return sum(self._widths)

    def _codes(self, encoded: Tensor) -> Codes:
        """The codes in what the encoder says."""
        return split(encoded, self._widths)

    def _latent(self, rows: Tensor) -> Tensor:
        """What the decoder reads, from joined codes."""
        return rows

    def _drawn(self, encoded: Tensor) -> Codes:
        """The codes that training decodes."""
        return split(encoded + self.noise * torch.randn_like(encoded), self._widths)

    def _mixture(self, codes: Codes) -> Codes:
        """The codes that must decode to what an adversary takes for real."""
        return codes.shuffled()

    def _penalties(self, encoded: Tensor, codes: Codes) -> dict[str, Tensor]:
        """What the method adds to the loss."""
        return {}

    def _players(self) -> list[Step]:
        """What learns beside the model: steps that take the images of a batch and its codes."""
        return []

    def _companions(self) -> dict[str, nn.Module | Optimizer]:
        """The networks and optimisers of the players."""
        return {}

    def _train(self, data: ColourDigits) -> None:
        optimizer = Adam(self.network_.parameters(), lr=self.lr)
        opponent = Opponent(max(self.channels // 2, 1), self.lr, self.device) if self.adversary else None
        watching = {} if opponent is None else opponent.state
        images = data.images.to(self.device).contiguous(memory_format=torch.channels_last)
        self.history_ = train(
            self._step(optimizer, opponent),
            Batches((images, data.digits.to(self.device), data.colours.to(self.device)), self.batch_size),
            epochs=self.epochs,
            state={"network": self.network_, "optimizer": optimizer, **watching, **self._companions()},
            label="disentangling",
        )

    def _step(self, optimizer: Optimizer, opponent: Opponent | None) -> Step:
        """Encodes a batch once; the players learn from its codes, then the model does."""
        players = self._players()
        move = descend(optimizer, lambda batch: self._objective(batch, opponent))

        def step(batch: Batch) -> dict[str, Tensor]:
            encoded = self.network_["encoder"](batch[0])
            codes = self._drawn(encoded)
            terms: dict[str, Tensor] = {}
            for player in players:
                terms |= player((batch[0], *codes.detached()))
            terms |= move((*batch, encoded, *codes))
            return terms if opponent is None else terms | opponent.learn(batch[0])

        return step

    def _objective(self, batch: Batch, opponent: Opponent | None) -> dict[str, Tensor]:
        images, digits, colours, encoded = batch[:4]
        codes = Codes(*batch[4:])
        error = (self.network_["decoder"](codes.moving_style().joined()) - images).square().sum((1, 2, 3)).mean()
        off = (self.network_["colour"](codes.colour) - colours).square().sum(1).mean()
        terms = {
            "reconstruction": self.reconstruction * error,
            "digit": cross_entropy(self.network_["digit"](codes.digit), digits),
            "colour": _COLOUR_WEIGHT * off,
        }
        if opponent is not None:
            made = self.network_["decoder"](self._mixture(codes.detached()).joined())
            terms["seen through"] = opponent.sees_through(made)
        return terms | self._penalties(encoded, codes)


def _chunks(rows: Tensor) -> Iterator[Tensor]:
    """Chunks of one size, the last filled up with zeros: products of another height may round otherwise."""
    for start in range(0, len(rows), _CHUNK):
        chunk = rows[start : start + _CHUNK]
        yield torch.cat([chunk, chunk.new_zeros(_CHUNK - len(chunk), *rows.shape[1:])])
