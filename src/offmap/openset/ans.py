"""Adaptive negative samples: one-versus-rest heads that are trained against synthetic negatives."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import AdamW

from offmap.arrays import to_tensor
from offmap.calibration.classifier_contract import Classification
from offmap.openset.adapter import Adapter, fit_adapter, fit_scale
from offmap.openset.ans_learning import AnalyticLabels, first_of_each_class, fit_logistic, heads_of, placed
from offmap.openset.ans_network import ANSNetwork
from offmap.openset.head_batches import NO_HEAD, HeadBatches
from offmap.openset.incremental import IncrementalClassifier
from offmap.openset.negatives import GAMMA, Shell, ascend
from offmap.parameters import Count, Multiple, Natural, NonNegative, Positive, Share
from offmap.ratio import loss_on_p, loss_on_q
from offmap.train import Batch, History, descend, train

# The steps of the heads are grouped into about this many epochs, for the history and the progress bar.
_HEAD_EPOCHS = 20
# Adam moves each weight by as much, so heads on few features learn slower: they get a larger learning rate.
_FEATURES = 384
# New heads train with half of the steps, each half as long again, so that a lesson takes a second or two.
_LESSON_STEPS, _LESSON_LR = 0.5, 1.5


@final
@dataclass(kw_only=True, eq=False, repr=False)
class ANSClassifier(IncrementalClassifier):
    r"""Rejects a row when every class-specific head rejects it.

    Each head is trained against synthetic negatives placed just outside its class. Head $g_m$ minimises
    $L_{rest} + \lambda L_{syn}$: rows of its class against rows of other classes, and against negatives in the shell
    $r_m \le \|\tilde z - z\| \le \gamma r_m$ around rows $z$ of its class. The radius is
    $r_m = f \sqrt{2\,\mathrm{Tr}\,\Sigma_m}$. A row that any head accepts is labelled by a classifier of the known
    classes. The novelty is $-\max_m g_m(z)$. The paper's own rule (``rule="own"``) rejects above 0, where every head
    rejects.

    Args:
        space: Feature space of the heads: the scaled rows ("raw"), or these after a residual layer trained on the known
            classes ("adapted"). Choose "raw" if labels are noisy or the features are already tuned to the classes.
        adapter_epochs: Passes over the rows that train the residual layer of the adapted space.
        head_hidden: Widths of the hidden layers of each head.
        dropout: Share of each hidden layer of the heads dropped while training.
        negative_weight: Weight $\lambda$ of the negatives; 0 leaves plain one-versus-rest heads. With a larger weight
            the own rule rejects more rows.
        gaussian_start: Whether negatives start at Gaussian offsets from the rows, or at the rows themselves.
        ascent_steps: Number of gradient ascent steps that make the negatives harder; 0 for none.
        ascent_size: Length of an ascent step as a multiple of the inner radius.
        projection: Whether negatives are moved into the shell.
        radius: Inner radius $r$ of all shells; by default it is measured for each class.
        radius_factor: Factor $f$ of the measured radii. With a larger one the own rule rejects fewer rows.
        gamma: Outer radius of a shell as a multiple of the inner one.
        n_rest: Rows of other classes that a head sees per row of its own class.
        steps: Number of training steps of the heads; rounded up to whole epochs of equal length, about 20 of them.
            Raise it for many classes or many rows per class.
        head_batch: Rows of its own class that each head sees per step.
        lr: Learning rate of AdamW for heads on 384 or more features; on fewer it grows with the inverse root of them.
        penalty: L2 penalty of the logistic regression that labels rows of the known classes.
        closed_set: What labels rows of the known classes: logistic regression, or ridge regression on random features
            ("analytic"). The sums of the latter take new classes as if all rows had come at once; with the former,
            ``partial_fit`` fits again to the rows that were kept. Choose "analytic" to learn in stages.
        closed_set_width: Number of random features of the analytic one.
        renew_heads: Whether ``partial_fit`` trains the heads of known classes anew, on the rows that were kept. By
            default they stay as they are, and only the heads of new classes are trained.

    Attributes:
        network_: The scaling, the adapter, the classifier of the known classes and the heads.
        rows_: Up to a hundred training rows per class, against which later heads are trained.
        row_labels_: Their classes.
        held_out_rows_: The rows that set the threshold.
        held_out_labels_: Their classes.

    Reference: Bai et al., Open World Classification with Adaptive Negative Samples, arXiv:2303.05581.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = ANSClassifier(calibration=0.3, random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [9.0, 1.0, 9.0, 9.0]])
        array([ 0,  1, -1])
    """

    own_threshold: ClassVar[float | None] = 0.0
    learning_parameters: ClassVar[Mapping[str, Any]] = {"closed_set": "analytic"}

    space: Literal["raw", "adapted"] = "adapted"
    adapter_epochs: Count = 2
    head_hidden: tuple[Count, ...] = (256,)
    dropout: Share = 0.1
    negative_weight: NonNegative = 0.2
    gaussian_start: bool = True
    ascent_steps: Natural = 1
    ascent_size: Positive = 0.1
    projection: bool = True
    radius: Positive | None = None
    radius_factor: Positive = 2.4
    gamma: Multiple = GAMMA
    n_rest: Count = 4
    steps: Count = 100
    head_batch: Count = 16
    lr: Positive = 1.4e-3
    penalty: Positive = 3e-3
    closed_set: Literal["logistic", "analytic"] = "logistic"
    closed_set_width: Count = 2000
    renew_heads: bool = False

    def _build(self) -> None:
        width = self.closed_set_width if self.closed_set == "analytic" else 0
        self.network_ = self._new_network(len(self.classes_), width)

    def _new_network(self, heads: int, width: int = 0) -> ANSNetwork:
        inputs, adapted = math.prod(self.input_shape_), self.space == "adapted"
        return ANSNetwork(inputs, heads, tuple(self.head_hidden), self.dropout, adapted, width).to(self.device)

    def _fit(self, X: Tensor, y: Tensor) -> None:
        if self.negative_weight and not self.gaussian_start and not self.ascent_steps:
            raise ValueError("ascent_steps must be at least 1 with gaussian_start=False: they move the negatives")
        self._build()
        fit_scale(self.network_.scale, X, one_unit=len(self.input_shape_) == 3)
        scaled = self.network_.scale(X)
        self.history_ |= self._fit_adapter(self.network_, scaled, y)
        with torch.no_grad():
            Z = self.network_.space(X)
        self._fit_classifier(Z, y)
        self._keep_rows(X, y.cpu().numpy())
        self.history_ |= self._fit_heads(self.network_, Z, y, self._shell(Z, y), self.steps, self.lr)
        self.network_.eval()

    def _fit_adapter(self, network: ANSNetwork, scaled: Tensor, y: Tensor) -> History:
        """Trains the adapter, if the network has one."""
        if not isinstance(network.adapter, Adapter):
            return {}
        return fit_adapter(network.adapter, scaled, y, epochs=self.adapter_epochs)

    def _fit_classifier(self, Z: Tensor, y: Tensor, new: slice = slice(None)) -> None:
        """Fits the classifier of the known classes; the analytic one has learnt all rows but the ``new`` ones."""
        classifier = self.network_.classifier
        if isinstance(classifier, AnalyticLabels):
            classifier.fit(Z[new], y[new])
        else:
            fit_logistic(classifier, Z, y, self.penalty)

    def _keep_rows(self, rows: Tensor, codes: NDArray[np.intp]) -> None:
        kept = first_of_each_class(codes)
        self.rows_, self.row_labels_ = rows.cpu().numpy()[kept], self.classes_[codes[kept]]

    def _learn(self, X: Tensor, y: Tensor, old: NDArray[np.intp]) -> None:
        rows, first = torch.cat([to_tensor(self.rows_, self.device), X]), len(self.rows_)
        codes = np.concatenate([np.searchsorted(self.classes_, self.row_labels_), y.cpu().numpy()])
        with torch.no_grad():
            Z = self.network_.space(rows)
        if isinstance(self.network_.classifier, AnalyticLabels):
            self.network_.classifier.ridge.place_classes(len(self.classes_), old)
        trained = old[:0] if self.renew_heads else old
        if len(trained) < len(self.classes_):
            self._add_heads(Z, codes, trained)
        self._fit_classifier(Z, torch.from_numpy(codes).to(Z.device), slice(first, None))
        self._keep_rows(rows, codes)

    def _add_heads(self, Z: Tensor, codes: NDArray[np.intp], trained: NDArray[np.intp]) -> None:
        """Trains the heads of all classes but ``trained``, side by side; the heads of these stay byte for byte."""
        heads, y = self.network_.heads.state_dict(), torch.from_numpy(heads_of(codes, trained)).to(Z.device)
        added, own = self._new_network(len(self.classes_) - len(trained)), y != NO_HEAD
        steps = math.ceil(_LESSON_STEPS * self.steps)
        history = self._fit_heads(added, Z, y, self._shell(Z[own], y[own]), steps, _LESSON_LR * self.lr)
        self.history_ = self.history_ | history
        self.network_.take_heads(placed(heads, added.heads.state_dict(), trained))

    def _shell(self, Z: Tensor, y: Tensor) -> Shell:
        classes = int(y.max()) + 1
        return Shell.around(Z, y, classes, radius=self.radius, factor=self.radius_factor, gamma=self.gamma)

    def _fit_heads(self, network: ANSNetwork, Z: Tensor, y: Tensor, shell: Shell, steps: int, lr: float) -> History:
        """Trains all heads side by side, each on its own rows, the rest and its negatives."""
        # Fused: a plain step would pass four times over the millions of weights of the heads.
        rate = lr * max(1.0, math.sqrt(_FEATURES / Z.shape[1]))
        optimizer = AdamW(network.heads.parameters(), lr=rate, fused=True)
        per_epoch, classes = math.ceil(steps / _HEAD_EPOCHS), int(y.max()) + 1

        def terms(batch: Batch) -> dict[str, Tensor]:
            own, rest = (Z[rows] for rows in batch)
            return self._head_terms(network, own, rest, shell)

        return train(
            descend(optimizer, terms),
            HeadBatches(y, classes, self.head_batch, self.n_rest, per_epoch),
            epochs=math.ceil(steps / per_epoch),
            state={"heads": network.heads, "optimizer": optimizer},
            label="heads",
        )

    def _head_terms(self, network: ANSNetwork, own: Tensor, rest: Tensor, shell: Shell) -> dict[str, Tensor]:
        """Returns the mean loss of each head on its own rows, the rest and the negatives, summed over the heads."""
        negatives = self._negatives(network, own, shell) if self.negative_weight else own[:, :0]
        widths = [own.shape[1], rest.shape[1], negatives.shape[1]]
        logits = network.own_logits(torch.cat([own, rest, negatives], dim=1))
        on_own, on_rest, on_negatives = logits.split(widths, dim=1)
        terms = {"own": loss_on_p(on_own).mean(1).sum(), "rest": loss_on_q(on_rest).mean(1).sum()}
        if self.negative_weight:
            terms["negatives"] = self.negative_weight * loss_on_q(on_negatives).mean(1).sum()
        return terms

    def _negatives(self, network: ANSNetwork, own: Tensor, shell: Shell) -> Tensor:
        """Returns one synthetic negative per own row of each head."""
        codes = torch.arange(len(own), device=own.device)[:, None].expand(own.shape[:2])
        offset = shell.start(codes) if self.gaussian_start else torch.zeros_like(own)
        size = self.ascent_size * shell.inner[codes]
        offset = ascend(network.own_logits, own, offset, self.ascent_steps, size)
        return own + (shell.project(offset, codes) if self.projection else offset)

    def _row_width(self) -> int:
        return len(self.classes_) * max(self.head_hidden, default=1)

    def _classify(self, X: Tensor) -> Classification:
        Z = self.network_.space(X)
        proba = self.network_.classifier(Z).softmax(dim=1)
        return Classification(proba, -self.network_.head_logits(Z).amax(dim=1))
