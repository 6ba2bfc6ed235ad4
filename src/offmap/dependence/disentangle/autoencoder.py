"""An autoencoder with named groups of codes and a total-correlation penalty between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from offmap import parameters
from offmap.dependence.disentangle import networks
from offmap.dependence.disentangle.adversary import Adversary, discriminator
from offmap.dependence.disentangle.groups import CodeGroup, split
from offmap.dependence.disentangle.inputs import Inputs
from offmap.dependence.disentangle.penalty import TotalCorrelationPenalty
from offmap.dependence.disentangle.targets import Target, TargetHead, check_targets
from offmap.dependence.disentangle.training import CodeNetwork, CodeTraining, add_jitter
from offmap.dependence.estimator import BatchSize
from offmap.parameters import Count, Device, Natural, NonNegative, Positive
from offmap.random_state import draw_seed, local_seed
from offmap.train import History


@dataclass(kw_only=True, eq=False, repr=False)
class GroupedAutoencoder(BaseEstimator):
    r"""Encodes rows or images as named groups of codes that share as little as possible, and decodes any mixture.

    $$L = \lambda \lVert D(z) - x \rVert^2 + \sum_g w_g\,\mathrm{loss}(F_g(z_g), y_g) + \gamma\,TC(z_1, \dots, z_k)$$

    A group with a target is trained by that target alone, because the reconstruction would fill it with everything
    else. The groups without a target hold the rest. The total correlation, estimated by critics that are trained
    alongside, keeps them from repeating what the other groups say. Codes are standardised, and noise is added to them
    in training: without it a code could hide any information in its last decimals.

    Args:
        groups: The groups of codes, at least 2, such as ``{"digit": CodeGroup(16, target="class"), "style":
            CodeGroup(32)}``.
        tc_weight: $\gamma$, per nat. 0 trains a plain autoencoder without critics; raise it if groups without a target
            still predict the targets of others.
        jitter: Standard deviation of the noise added to the codes, which have standard deviation 1.
        reconstruction_weight: $\lambda$; the squared error is summed over all pixels or features. Higher values give
            sharper reconstructions and more leakage between groups.
        joint: Whether the reconstruction and the total correlation also train the groups with a target, as the loss
            above is written. It is off because these groups then fill up with the rest.
        estimator: Estimator of each mutual information, such as "infonce" or "js" (cheaper).
        critic_hidden: Widths of the critics' hidden layers.
        critic_steps: Steps of the critics per step of the autoencoder.
        critic_lr: Learning rate of the critics.
        adversary: Whether decoded mixtures of codes must also look like real data to a discriminator.
        conv_channels: Channels of the first convolution, for images; the next layers have 2, 4 and 8 times as many.
        hidden: Widths of the hidden layers, for rows.
        epochs: Passes over the data.
        batch_size: Rows per step.
        lr: Learning rate of encoder, decoder and heads.
        random_state: Seed; with the same seed, the same data give the same model.
        device: Torch device, such as "cpu" or "cuda".

    Attributes:
        network_: Encoder, decoder and heads, a torch module.
        correlation_: The fitted ``TotalCorrelation`` of the groups, or None if ``tc_weight`` is 0.
        classes_: The labels of each group with target "class".
        inputs_: Shape of the data, and the scale of rows.
        history_: Mean of each term of the loss per epoch.

    Reference: Bai et al., Estimating Total Correlation with Mutual Information Estimators, arXiv:2011.04794.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> kind, size = rng.integers(3, size=200), rng.normal(size=200)
        >>> X = np.column_stack([np.eye(3)[kind], size, kind + size])
        >>> groups = {"kind": CodeGroup(4, target="class"), "rest": CodeGroup(4)}
        >>> model = GroupedAutoencoder(groups=groups, epochs=2, random_state=0).fit(X, {"kind": kind})
        >>> codes = model.encode(X)
        >>> moved = model.decode(codes | {"kind": codes["kind"][::-1]})
        >>> moved.shape, sorted(model.history_)
        ((200, 5), ['critic', 'kind', 'reconstruction', 'total_correlation'])
    """

    groups: Mapping[str, CodeGroup]
    tc_weight: NonNegative = 1.0
    jitter: NonNegative = 0.7
    reconstruction_weight: Positive = 0.1
    joint: bool = False
    estimator: str = "infonce"
    critic_hidden: tuple[Count, ...] = (90, 90)
    critic_steps: Count = 1
    critic_lr: Positive = 1e-3
    adversary: bool = False
    conv_channels: Count = 16
    hidden: tuple[Count, ...] = (128, 128)
    epochs: Count = 10
    batch_size: BatchSize = 128
    lr: Positive = 2e-3
    random_state: Natural | None = None
    device: Device = "cpu"

    def fit(self, X: ArrayLike, targets: Mapping[str, ArrayLike] | None = None) -> Self:
        """Trains the autoencoder.

        Args:
            X: Rows ``(n, d)``, or images ``(n, h, w)`` or ``(n, h, w, c)`` as ``uint8`` or as floats from -1 to 1.
            targets: Labels or numbers for each group with a target, by the group's name.
        """
        parameters.check(self)
        self._check_groups()
        self.inputs_ = Inputs.fit(X)
        rows = self.inputs_.to_tensor(X).to(self.device)
        if len(rows) < 2:
            raise ValueError(f"X must have at least 2 rows; got {len(rows)}")
        found = check_targets(targets or {}, self.groups, len(rows))
        self.classes_ = {name: target.classes for name, target in found.items() if target.classes is not None}
        with local_seed(draw_seed(self.random_state)):
            self.history_: History = self._train(rows, found)
        return self

    def encode(self, X: ArrayLike) -> dict[str, NDArray[np.float32]]:
        """Returns the codes ``(n, width)`` of each group; those of a row depend on it alone."""
        check_is_fitted(self, "network_")
        rows = networks.in_chunks(self.network_.encoder, self.inputs_.to_tensor(X).to(self.device))
        return {name: code.numpy() for name, code in split(rows, self.groups).items()}

    def decode(self, codes: Mapping[str, ArrayLike]) -> NDArray[np.float32]:
        """Returns the data, in the shape of ``X``, that codes stand for; images are floats from -1 to 1."""
        check_is_fitted(self, "network_")
        rows = torch.from_numpy(join_codes(codes, self.groups)).to(self.device)
        return self.inputs_.to_array(networks.in_chunks(self.network_.decoder, rows))

    def _check_groups(self) -> None:
        if len(self.groups) < 2 or not all(isinstance(group, CodeGroup) for group in self.groups.values()):
            raise ValueError(f"groups must be a mapping of at least 2 names to CodeGroup; got {self.groups!r}")

    def _train(self, rows: Tensor, targets: Mapping[str, Target]) -> History:
        shape = self.inputs_.tensor_shape
        self.network_ = self._network(shape, {name: target.outputs for name, target in targets.items()})
        penalty = self._penalty() if self.tc_weight else None
        self.correlation_ = None if penalty is None else penalty.correlation
        training = CodeTraining(
            network=self.network_,
            groups=self.groups,
            draw=add_jitter(self.jitter),
            reconstruction_weight=self.reconstruction_weight,
            penalty=penalty,
            adversary=self._adversary(shape) if self.adversary else None,
            joint=self.joint,
        )
        values = tuple(target.values.to(self.device) for target in targets.values())
        how: dict[str, Any] = {"epochs": self.epochs, "batch_size": self.batch_size, "lr": self.lr}
        return training.run(rows, values, **how)

    def _network(self, shape: tuple[int, ...], outputs: Mapping[str, int]) -> CodeNetwork:
        width = sum(group.width for group in self.groups.values())
        encoder = networks.encoder(shape, width, self.conv_channels, self.hidden, standardised=True)
        decoder = networks.decoder(width, shape, self.conv_channels, self.hidden)
        heads = {name: TargetHead(self.groups[name], count) for name, count in outputs.items()}
        return CodeNetwork(encoder, decoder, heads).to(self.device)

    def _penalty(self) -> TotalCorrelationPenalty:
        return TotalCorrelationPenalty(
            [group.width for group in self.groups.values()],
            weight=self.tc_weight,
            estimator=self.estimator,
            hidden=self.critic_hidden,
            steps=self.critic_steps,
            lr=self.critic_lr,
            device=self.device,
        )

    def _adversary(self, shape: tuple[int, ...]) -> Adversary:
        network = discriminator(shape, max(self.conv_channels // 2, 1), self.hidden)
        return Adversary(network.to(self.device), self.lr)


def join_codes(codes: Mapping[str, ArrayLike], groups: Mapping[str, CodeGroup]) -> NDArray[np.float32]:
    """Checks the codes of each group and concatenates them in the order of ``groups``."""
    if set(codes) != set(groups):
        raise ValueError(f"codes must be given for the groups {[*groups]}; got {[*codes]}")
    arrays = {name: np.asarray(codes[name], dtype=np.float32) for name in groups}
    wanted = {name: group.width for name, group in groups.items()}
    shapes = {name: array.shape for name, array in arrays.items()}
    if any(len(shape) != 2 or shape[1] != wanted[name] for name, shape in shapes.items()):
        raise ValueError(f"codes must be arrays (n, width) with the widths {wanted}; got the shapes {shapes}")
    if len({len(array) for array in arrays.values()}) > 1:
        raise ValueError(f"codes must have the same number of rows in each group; got the shapes {shapes}")
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            row = int(np.flatnonzero(~np.isfinite(array).all(1))[0])
            raise ValueError(f"codes[{name!r}] must be finite; row {row} is not")
    return np.hstack([*arrays.values()])
