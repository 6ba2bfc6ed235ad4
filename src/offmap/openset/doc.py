"""Deep open classification."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid, one_hot

from offmap.calibration.classifier_contract import Classification
from offmap.openset.closed_set import ClosedSetClassifier
from offmap.parameters import Positive


@final
@dataclass(kw_only=True, eq=False, repr=False)
class DOCClassifier(ClosedSetClassifier):
    r"""Rejects a row when the one-versus-rest sigmoid of every class is below the threshold of that class.

    Each class has a sigmoid $p_k$, trained one versus rest, and a threshold
    $t_k = \max(\tfrac12, 1 - 3 \sigma_k)$, where $\sigma_k$ is the spread around 1 of $p_k$ on the rows of class $k$.
    The novelty is $-\max_k (p_k - t_k)$. The paper's own rule (``rule="own"``) rejects above 0, where every
    $p_k < t_k$. The probabilities of the known classes are the sigmoids divided by their sum.

    Args:
        deviations: How many $\sigma_k$ below 1 the threshold of a class lies. Raise it to reject fewer rows.

    Attributes:
        network_: The trained classifier.
        class_thresholds_: Threshold $t_k$ of each class, in the order of ``classes_``.

    Reference: Shu, Xu and Liu, DOC: Deep Open Classification of Text Documents, arXiv:1709.08716, section 2.4.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = DOCClassifier(calibration=0.3, random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3]])
        array([0, 1])
    """

    own_threshold: ClassVar[float | None] = 0.0

    deviations: Positive = 3.0

    def _build(self) -> None:
        self.network_ = self._new_network()

    def _fit(self, X: Tensor, y: Tensor) -> None:
        self._fit_closed(X, y, loss=one_versus_rest_loss)
        with torch.no_grad():
            own = self.network_(X).double().sigmoid().gather(1, y[:, None]).squeeze(1)
        spread = spread_around_one(own, y, len(self.classes_))
        self.class_thresholds_ = (1 - self.deviations * spread).clamp(min=0.5).cpu().numpy()

    def _classify(self, X: Tensor) -> Classification:
        # In single precision the sigmoid rounds to 1 for rows that still differ in confidence.
        logits = self.network_(X).double()
        thresholds = torch.from_numpy(self.class_thresholds_).to(self.device)
        # The softmax of the log sigmoids is the sigmoids over their sum, without underflow.
        return Classification(logsigmoid(logits).softmax(dim=1), (thresholds - logits.sigmoid()).amin(dim=1))


def one_versus_rest_loss(logits: Tensor, codes: Tensor) -> Tensor:
    """Returns the binary cross-entropy of every class against the rest, averaged over rows and classes."""
    return binary_cross_entropy_with_logits(logits, one_hot(codes, logits.shape[1]).to(logits))


def spread_around_one(own: Tensor, codes: Tensor, classes: int) -> Tensor:
    r"""Returns the standard deviation of $\{p_i\} \cup \{2 - p_i\}$ of each class, whose mean is 1.

    Args:
        own: Probability that each row gets from its own class.
        codes: The class of each row.
        classes: Number of classes.
    """
    squares = torch.bincount(codes, weights=(1 - own) ** 2, minlength=classes)
    return (squares / torch.bincount(codes, minlength=classes)).sqrt()
