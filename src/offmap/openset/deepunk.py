"""DeepUnk: large margin cosine loss, then the local outlier factor."""

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, normalize, one_hot

from offmap.openset.lof import LocalOutlierClassifier
from offmap.parameters import NonNegative, Positive


class CosineHead(nn.Linear):
    """One logit a class: the cosine between the features and the weights of the class, times ``scale``.

    Args:
        features: Width of the feature layer.
        classes: Number of logits.
        scale: Largest logit.
    """

    def __init__(self, features: int, classes: int, scale: float) -> None:
        super().__init__(features, classes, bias=False)
        self.scale = scale

    def forward(self, features: Tensor) -> Tensor:
        """The logits."""
        return self.scale * linear(normalize(features, dim=1), normalize(self.weight, dim=1))


@dataclass(kw_only=True, eq=False, repr=False)
class DeepUnkClassifier(LocalOutlierClassifier):
    r"""Trains features of each class into a narrow cone and rejects rows where training features are sparse.

    The classifier sees the cosines $c_k$ between features and class weights, and in training must name the class of
    a row even with a margin taken from its own cosine,

    $$L = -\log \frac{e^{s (c_y - m)}}{e^{s (c_y - m)} + \sum_{k \ne y} e^{s c_k}}.$$

    The novelty is the local outlier factor of the features, scaled to length 1, less its quantile
    1 - ``contamination`` over the training rows; its own rule rejects above 0.

    Args:
        scale: $s$, the largest logit.
        margin: $m$, taken from the cosine of a row's own class in training.

    Reference: Lin and Xu, Deep Unknown Intent Detection with Margin Loss, arXiv:1906.00434.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = DeepUnkClassifier(random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3]])
        array([0, 1])
    """

    scale: Positive = 30.0
    margin: NonNegative = 0.35

    def _build(self) -> None:
        super()._build()
        head = self.network_.head
        self.network_.head = CosineHead(head.in_features, head.out_features, self.scale).to(self.device)

    def _loss(self, logits: Tensor, codes: Tensor) -> Tensor:
        return large_margin_loss(logits, codes, self.scale * self.margin)

    def _features(self, X: Tensor) -> Tensor:
        return normalize(self.network_.features(X), dim=1)


def large_margin_loss(logits: Tensor, codes: Tensor, margin: float) -> Tensor:
    """Cross-entropy with ``margin`` taken from the logit of each row's own class."""
    return cross_entropy(logits - margin * one_hot(codes, logits.shape[1]), codes)
