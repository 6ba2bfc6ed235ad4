"""The training step of an autoencoder with groups of codes."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from offmap.dependence import SaturationWarning
from offmap.dependence.disentangle.adversary import Adversary
from offmap.dependence.disentangle.groups import CodeGroup, Codes, detach, join, shuffle, split
from offmap.dependence.disentangle.penalty import TotalCorrelationPenalty
from offmap.dependence.disentangle.targets import TargetHead
from offmap.train import Batch, Batches, History, descend, train


class CodeNetwork(nn.Module):
    """Encoder, decoder, and one head for each group with a target.

    Args:
        encoder: Maps data to all codes.
        decoder: Maps all codes to data.
        heads: The heads, by the names of their groups.
    """

    def __init__(self, encoder: nn.Module, decoder: nn.Module, heads: Mapping[str, TargetHead]) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        # A list, since a name such as "type" cannot be a key of a ModuleDict.
        self.heads, self.names = nn.ModuleList(heads.values()), tuple(heads)
        # Convolutions are faster with the channels last; other layers are unchanged.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload] # not in the stub

    def target_losses(self, codes: Codes, targets: Batch) -> dict[str, Tensor]:
        """Returns the loss of each head."""
        heads = zip(self.names, self.heads, targets, strict=True)
        return {name: head.loss(codes[name], target) for name, head, target in heads}  # type: ignore[operator]


@dataclass(frozen=True, kw_only=True)
class CodeTraining:
    r"""What one training step minimises.

    $$\lambda \lVert D(z) - x \rVert^2 + \sum_g \mathrm{loss}_g(F_g(z_g), y_g) + \text{penalties}$$

    Groups with a target are trained by it alone; the reconstruction and the penalty move the other groups, unless
    ``joint``.

    Args:
        network: Encoder, decoder and heads.
        groups: The groups of codes.
        draw: Maps the encoder's output to the codes that are decoded, for example by adding noise.
        reconstruction_weight: $\lambda$.
        penalty: Penalty on what the groups share.
        adversary: Compares decoded mixtures of codes with real data.
        mix: Makes the mixtures.
        extra: Further terms, from the encoder's output.
        joint: Whether the reconstruction and the penalty also move the groups with a target.
    """

    network: CodeNetwork
    groups: Mapping[str, CodeGroup]
    draw: Callable[[Tensor], Tensor]
    reconstruction_weight: float
    penalty: TotalCorrelationPenalty | None = None
    adversary: Adversary | None = None
    mix: Callable[[Codes], Codes] = shuffle
    extra: Callable[[Tensor], dict[str, Tensor]] = lambda encoded: {}
    joint: bool = False

    def run(self, X: Tensor, targets: Batch, *, epochs: int, batch_size: int, lr: float) -> History:
        """Trains on tensors and returns the mean of each term per epoch."""
        X = X.contiguous(memory_format=torch.channels_last) if X.ndim == 4 else X
        optimizer = Adam(self.network.parameters(), lr=lr)
        move = descend(optimizer, self._objective)
        state: dict[str, nn.Module | Optimizer] = {"network": self.network, "optimizer": optimizer}
        for part in (self.adversary, self.penalty):
            state |= {} if part is None else part.state
        with warnings.catch_warnings():
            # Near its ceiling InfoNCE is still a usable penalty.
            warnings.simplefilter("ignore", SaturationWarning)
            return train(
                lambda batch: self._step(batch, move),
                Batches((X, *targets), batch_size),
                epochs=epochs,
                state=state,
                label="disentangling",
            )

    def _step(self, batch: Batch, move: Callable[[Batch], dict[str, Tensor]]) -> dict[str, Tensor]:
        """Encodes a batch once; the critics learn from its codes, then the autoencoder, then the adversary."""
        encoded = self.network.encoder(batch[0])
        drawn = self.draw(encoded)
        terms = {} if self.penalty is None else self.penalty.learn(split(drawn, self.groups))
        terms |= move((encoded, drawn, *batch))
        return terms if self.adversary is None else terms | self.adversary.learn(batch[0])

    def _objective(self, batch: Batch) -> dict[str, Tensor]:
        encoded, drawn, X, *targets = batch
        codes = split(drawn, self.groups)
        moved = detach(codes, keep=[name for name, group in self.groups.items() if self.joint or group.target is None])
        error = (self.network.decoder(join(moved)) - X).square().sum(tuple(range(1, X.ndim))).mean()
        terms = {"reconstruction": self.reconstruction_weight * error}
        terms |= self.network.target_losses(codes, tuple(targets))
        if self.adversary is not None:
            decoded = self.network.decoder(join(self.mix(detach(codes))))
            terms["decoder"] = self.adversary.decoder_loss(decoded)
        if self.penalty is not None:
            terms["total_correlation"] = self.penalty.value(moved)
        return terms | self.extra(encoded)


def add_jitter(jitter: float) -> Callable[[Tensor], Tensor]:
    """Makes the function that adds Gaussian noise to the encoder's output."""
    return lambda encoded: encoded + jitter * torch.randn_like(encoded)
