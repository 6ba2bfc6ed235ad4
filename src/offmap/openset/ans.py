"""Adaptive negative samples: one head a class, taught by points just outside it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.optim import AdamW

from offmap.base import Classification, OpenSetClassifier
from offmap.nets import Standardise
from offmap.openset.heads import OneVersusRestHeads
from offmap.openset.negatives import Shell, ascend
from offmap.openset.space import Adapter, fit_adapter, fit_scale
from offmap.parameters import Count, Multiple, Natural, NonNegative, Positive, Share
from offmap.train import Batch, History, descend, train


class ANSNetwork(nn.Module):
    """The space, the classifier of the known classes in it, and one head a class."""

    def __init__(self, inputs: int, classes: int, hidden: tuple[int, ...], dropout: float, adapted: bool) -> None:
        super().__init__()
        self.scale = Standardise(inputs)
        self.adapter = Adapter(inputs) if adapted else nn.Identity()
        self.classifier = nn.Linear(inputs, classes)
        self.heads = OneVersusRestHeads(classes, inputs, hidden, dropout)

    def space(self, X: Tensor) -> Tensor:
        """Rows as the heads see them."""
        return self.adapter(self.scale(X))


@dataclass(frozen=True)
class HeadBatches:
    """For every head at once, rows of its own class and rows of the rest.

    Args:
        y: The class of each row.
        classes: Number of classes.
        own: Rows of its class that each head sees in a step.
        rest: Rows of other classes for each row of its own.
        steps: Steps an epoch.
    """

    y: Tensor
    classes: int
    own: int
    rest: int
    steps: int

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Batch]:
        counts = torch.bincount(self.y, minlength=self.classes)[:, None]
        by_class = self.y.argsort(stable=True)
        first = counts.cumsum(0) - counts
        for _ in range(self.steps):
            own = first + self._below(counts, self.own)
            others = self._below(len(self.y) - counts, self.own * self.rest)
            # Rows are counted past the head's own ones.
            others = others + (others >= first) * counts
            yield by_class[own], by_class[others]

    def _below(self, limits: Tensor, count: int) -> Tensor:
        """Random integers from 0 up to each limit."""
        drawn = torch.rand(self.classes, count, dtype=torch.float64, device=limits.device)
        return (drawn * limits).long()


@dataclass(kw_only=True, eq=False, repr=False)
class ANSClassifier(OpenSetClassifier):
    r"""Gives each class a head that tells it from the rest and from points made up just outside it.

    Head $g_m$ is trained on $L_{rest} + \lambda L_{syn}$: own rows against rows of other classes, and against
    adaptive negatives in the shell $r_m \le \|\tilde z - z\| \le \gamma r_m$ around own rows. A row is unknown if
    every head says no; else a classifier of the known classes names it. The novelty is $-\max_m g_m(z)$, and its own
    rule rejects above 0: there is no threshold to tune.

    Args:
        space: Where the heads live: the "raw" rows, or "adapted" by a residual layer trained on the known classes.
        adapter_epochs: Passes over the rows that train that layer.
        head_hidden: Widths of the hidden layers of each head.
        dropout: Share of each hidden layer dropped while training.
        negatives: Weight λ of the negatives; 0 leaves plain one-versus-rest heads.
        noise: Start the negatives at Gaussian offsets; else at the rows themselves.
        ascent_steps: Steps k of gradient ascent; 0 switches it off.
        ascent_size: Length η of such a step.
        projection: Move the negatives into the shell.
        radius: Inner radius r of every shell; by default $\sqrt{2\,\mathrm{Tr}\,\Sigma_m}$ of each class.
        gamma: Outer radius as a multiple of the inner one.
        rest: Rows of other classes that a head sees for each row of its own.
        steps: About how many steps train the heads: whole twentieths of it.
        head_batch: Rows of its own class that each head sees in a step.
        lr: Step size of AdamW for the heads.
        penalty: Weight of the squared weights, against the mean loss, in the logistic regression that names the
            known classes.

    Reference: Bai et al., Open World Classification with Adaptive Negative Samples, arXiv:2303.05581.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = ANSClassifier(calibration=0.3, random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [9.0, 1.0, 9.0, 9.0]])
        array([ 0,  1, -1])
    """

    own_threshold: ClassVar[float | None] = 0.0

    rule: Literal["calibrated", "own"] = "own"
    space: Literal["raw", "adapted"] = "adapted"
    adapter_epochs: Count = 2
    head_hidden: tuple[Count, ...] = (256, 64)
    dropout: Share = 0.1
    negatives: NonNegative = 0.5
    noise: bool = True
    ascent_steps: Natural = 1
    ascent_size: Positive = 1.0
    projection: bool = True
    radius: Positive | None = None
    gamma: Multiple = 2.0
    rest: Count = 4
    steps: Count = 400
    head_batch: Count = 16
    lr: Positive = 3e-4
    penalty: Positive = 3e-3

    def _build(self) -> None:
        width = math.prod(self.input_shape_)
        adapted = self.space == "adapted"
        network = ANSNetwork(width, len(self.classes_), tuple(self.head_hidden), self.dropout, adapted)
        self.network_ = network.to(self.device)

    def _fit(self, X: Tensor, y: Tensor) -> None:
        if self.negatives and not self.noise and not self.ascent_steps:
            raise ValueError("ascent_steps must be at least 1 with noise=False: nothing else moves the negatives")
        self._build()
        fit_scale(self.network_.scale, X, one_unit=len(self.input_shape_) == 3)
        if isinstance(self.network_.adapter, Adapter):
            scaled = self.network_.scale(X)
            self.history_ |= fit_adapter(self.network_.adapter, scaled, y, epochs=self.adapter_epochs)
        with torch.no_grad():
            Z = self.network_.space(X)
        self._fit_classifier(Z, y)
        self.history_ |= self._fit_heads(Z, y)
        self.network_.eval()

    def _fit_classifier(self, Z: Tensor, y: Tensor) -> None:
        """The classifier of the known classes."""
        logistic = LogisticRegression(C=1 / (self.penalty * len(Z)), tol=1e-3, max_iter=1000)
        logistic.fit(Z.cpu().numpy(), y.cpu().numpy())
        with torch.no_grad():
            self.network_.classifier.weight.copy_(torch.from_numpy(_one_row_a_class(logistic.coef_)))
            self.network_.classifier.bias.copy_(torch.from_numpy(_one_row_a_class(logistic.intercept_)))

    def _fit_heads(self, Z: Tensor, y: Tensor) -> History:
        """All heads, each on its own rows, the rest and its negatives."""
        classes = len(self.classes_)
        shell = Shell.around(Z, y, classes, radius=self.radius, gamma=self.gamma)
        # Fused: a plain step would walk four times over the millions of weights of the heads.
        optimizer = AdamW(self.network_.heads.parameters(), lr=self.lr, fused=True)
        per_epoch = math.ceil(self.steps / _HEAD_EPOCHS)

        def terms(batch: Batch) -> dict[str, Tensor]:
            own, rest = (Z[rows] for rows in batch)
            return self._head_terms(own, rest, shell)

        return train(
            descend(optimizer, terms),
            HeadBatches(y, classes, self.head_batch, self.rest, per_epoch),
            epochs=math.ceil(self.steps / per_epoch),
            state={"heads": self.network_.heads, "optimizer": optimizer},
            label="heads",
        )

    def _head_terms(self, own: Tensor, rest: Tensor, shell: Shell) -> dict[str, Tensor]:
        """The mean loss of a head on its own rows, the rest, and the negatives, summed over the heads."""
        negatives = self._negatives(own, shell) if self.negatives else own[:, :0]
        widths = [own.shape[1], rest.shape[1], negatives.shape[1]]
        yes, no, made_up = self.network_.heads.own(torch.cat([own, rest, negatives], dim=1)).split(widths, dim=1)
        terms = {"own": softplus(-yes).mean(1).sum(), "rest": softplus(no).mean(1).sum()}
        if self.negatives:
            terms["negatives"] = self.negatives * softplus(made_up).mean(1).sum()
        return terms

    def _negatives(self, own: Tensor, shell: Shell) -> Tensor:
        """One adaptive negative for each own row of each head."""
        codes = torch.arange(len(own), device=own.device)[:, None].expand(own.shape[:2])
        offset = shell.start(codes) if self.noise else torch.zeros_like(own)
        offset = ascend(self.network_.heads.own, own, offset, self.ascent_steps, self.ascent_size)
        return own + (shell.project(offset, codes) if self.projection else offset)

    def _row_width(self) -> int:
        return len(self.classes_) * max(self.head_hidden, default=1)

    def _classify(self, X: Tensor) -> Classification:
        Z = self.network_.space(X)
        proba = self.network_.classifier(Z).softmax(dim=1)
        return Classification(proba, -self.network_.heads(Z).amax(dim=1))


def _one_row_a_class(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """For two classes scikit-learn has one row, the log-odds of the second; half of it up and half down is the same."""
    return np.concatenate([-values / 2, values / 2]) if len(values) == 1 else values


# The heads' steps are grouped into this many epochs, for the history and the progress bar.
_HEAD_EPOCHS = 20
