"""Maximum softmax probability."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from offmap.base import Judgement, OpenSetClassifier
from offmap.openset.closed import ClosedSetNetwork, fit_closed_set
from offmap.parameters import Count, NonNegative, Positive, Share


@dataclass(kw_only=True, eq=False, repr=False)
class MSPClassifier(OpenSetClassifier):
    r"""Rejects rows whose likeliest class is not likely enough.

    The novelty is $1 - \max_k p(k \mid x)$ of a softmax classifier; its own rule rejects above 0.5.

    Args:
        hidden: Widths of the hidden layers; none makes the classifier linear.
        dropout: Share of the features dropped while training.
        epochs: Passes over the training rows.
        batch_size: Rows a step.
        lr: Step size of AdamW.
        weight_decay: Its weight decay.

    Reference: Hendrycks and Gimpel, A Baseline for Detecting Misclassified and Out-of-Distribution Examples,
    arXiv:1610.02136.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = MSPClassifier(random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3]])
        array([0, 1])
    """

    own_threshold: ClassVar[float | None] = 0.5

    hidden: tuple[int, ...] = (128,)
    dropout: Share = 0.1
    epochs: Count = 30
    batch_size: Count = 128
    lr: Positive = 3e-3
    weight_decay: NonNegative = 1e-2

    def _build(self) -> None:
        network = ClosedSetNetwork(self.n_inputs_, tuple(self.hidden), len(self.classes_), self.dropout)
        self.network_ = network.to(self.device)

    def _fit(self, X: Tensor, y: Tensor) -> None:
        self.n_inputs_ = X.shape[1]
        self._build()
        self.history_ = fit_closed_set(self.network_, X, y, self)

    def _judge(self, X: Tensor) -> Judgement:
        proba = self.network_(X).softmax(dim=1)
        return Judgement(proba, 1 - proba.amax(dim=1))
