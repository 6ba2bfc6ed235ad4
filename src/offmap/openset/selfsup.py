"""Self-supervised open samples: mixtures of known rows train an open class."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from offmap.arrays import to_tensor
from offmap.calibration.classifier_contract import Classification
from offmap.openset.closed_set import ClosedSetClassifier
from offmap.parameters import Positive
from offmap.train import Batch


@final
@dataclass(kw_only=True, eq=False, repr=False)
class SelfSupClassifier(ClosedSetClassifier):
    r"""Rejects a row when an extra open class wins, which is trained on mixtures of rows of different classes.

    For each batch, pairs of training rows with $y_i \ne y_j$ are drawn anew, with $\theta \sim U(0, 1)$, and
    $\theta x_i + (1 - \theta) x_j$ are rows of the open class. With logits $v$, $p$ is the softmax of $v / \tau$ over
    the known classes and the open one, and the novelty is $\log p_{\text{open}} - \log \max_k p_k$. The paper's own
    rule (``rule="own"``) rejects above 0, where the open class wins. The probabilities of the known classes are the
    softmax over them alone.

    Args:
        temperature: Temperature $\tau$ of the softmax.
        mixes_per_row: Number of mixtures drawn per row of a batch. With more of them the own rule rejects more rows.
        outliers: Rows of the same form as ``X`` that belong to no known class and train the open class too. Each batch
            draws as many of them at random as it has rows. Give them if examples of unknown rows exist.

    Attributes:
        network_: The trained classifier; its last logit is that of the open class.

    Reference: Zhan et al., Out-of-Scope Intent Detection with Self-Supervision and Discriminative Training,
    arXiv:2106.08616.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = SelfSupClassifier(calibration=0.3, random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [5.4, 3.1, 2.8, 0.7]])
        array([ 0,  1, -1])
    """

    own_threshold: ClassVar[float | None] = 0.0

    temperature: Positive = 0.1
    mixes_per_row: Positive = 0.36
    outliers: NDArray[Any] | None = None

    def _build(self) -> None:
        self.network_ = self._new_network(extra_classes=1)

    def _fit(self, X: Tensor, y: Tensor) -> None:
        mixer, outliers = Mixer(X, y), self._outlier_rows()

        def terms(batch: Batch) -> dict[str, Tensor]:
            rows, codes = batch
            mixes = mixer.draw(max(1, round(self.mixes_per_row * len(rows))))
            drawn = [] if outliers is None else [outliers[_draw(outliers, len(rows))]]
            logits = self.network_(torch.cat([rows, mixes, *drawn])) / self.temperature
            open_codes = codes.new_full((len(logits) - len(rows),), len(self.classes_))
            return {"classification": cross_entropy(logits, torch.cat([codes, open_codes]))}

        self._fit_network(X, y, terms)

    def _outlier_rows(self) -> Tensor | None:
        if self.outliers is None:
            return None
        try:
            return to_tensor(self._rows(self.outliers), self.device)
        except ValueError as error:
            raise ValueError(f"outliers must hold rows like those of X: {error}") from None

    def _classify(self, X: Tensor) -> Classification:
        logits = self.network_(X).double() / self.temperature
        known, open_class = logits[:, :-1], logits[:, -1]
        return Classification(known.softmax(dim=1), open_class - known.amax(dim=1))


@final
class Mixer:
    """Draws mixtures of two rows of different classes.

    Args:
        X: The rows.
        y: Their classes, of which there are at least two.
    """

    def __init__(self, X: Tensor, y: Tensor) -> None:
        self.y, by_class = y.sort(stable=True)
        self.X = X[by_class]
        counts = torch.bincount(y)
        self.end = counts.cumsum(0)
        self.others = len(y) - counts

    def draw(self, count: int) -> Tensor:
        """Returns ``count`` mixtures, with weights drawn uniformly from 0 to 1."""
        one, other = self.pairs(count)
        share = torch.rand(count, 1, device=self.X.device)
        return share * self.X[one] + (1 - share) * self.X[other]

    def pairs(self, count: int) -> tuple[Tensor, Tensor]:
        """Returns indices into ``self.X`` of random rows, and of a random row of another class for each."""
        one = _draw(self.X, count)
        code = self.y[one]
        # Rows are sorted by class: those of other classes follow the last row of this one, wrapping around.
        step = (torch.rand(count, dtype=torch.float64, device=code.device) * self.others[code]).long()
        return one, (self.end[code] + step) % len(self.X)


def _draw(rows: Tensor, count: int) -> Tensor:
    """Returns indices of rows, drawn uniformly."""
    return torch.randint(len(rows), (count,), device=rows.device)
