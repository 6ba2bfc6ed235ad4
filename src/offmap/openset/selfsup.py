"""Self-supervised open samples: mixes of known rows as a class of their own."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from offmap.arrays import to_tensor
from offmap.base import Classification
from offmap.openset.closed import ClosedSetClassifier
from offmap.parameters import Positive
from offmap.train import Batch


@dataclass(kw_only=True, eq=False, repr=False)
class SelfSupClassifier(ClosedSetClassifier):
    r"""Trains one class more than there are, on rows made to be open: mixes of two known rows of different classes.

    For each batch, pairs of training rows with $y_i \ne y_j$ are drawn anew, with $\theta \sim U(0, 1)$, and
    $\theta x_i + (1 - \theta) x_j$ are rows of the open class. With logits $v$, $p$ is the softmax of $v / \tau$ over
    the known classes and the open one, and the novelty is $\log p_{\text{open}} - \log \max_k p_k$; its own rule
    rejects above 0, where the open class wins. The probabilities of the known classes are the softmax over them alone.

    Args:
        temperature: $\tau$.
        mixes: How many are drawn for each row of a batch; with more of them, more rows are rejected.
        outside: Rows from elsewhere, of the form of ``X``, that train the open class too: as many each batch as it
            has rows, drawn at random.

    Reference: Zhan et al., Out-of-Scope Intent Detection with Self-Supervision and Discriminative Training,
    arXiv:2106.08616.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = SelfSupClassifier(random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [5.4, 3.1, 2.8, 0.7]])
        array([ 0,  1, -1])
    """

    own_threshold: ClassVar[float | None] = 0.0

    rule: Literal["calibrated", "own"] = "own"
    temperature: Positive = 0.1
    mixes: Positive = 0.36
    outside: NDArray[Any] | None = None

    def _extra_classes(self) -> int:
        return 1

    def _fit(self, X: Tensor, y: Tensor) -> None:
        mix, outside = Mixer(X, y), self._outside_rows()

        def terms(batch: Batch) -> dict[str, Tensor]:
            rows, codes = batch
            mixes = mix(max(1, round(self.mixes * len(rows))))
            strange = [] if outside is None else [outside[_draw(outside, len(rows))]]
            logits = self.network_(torch.cat([rows, mixes, *strange])) / self.temperature
            open_codes = codes.new_full((len(logits) - len(rows),), len(self.classes_))
            return {"classification": cross_entropy(logits, torch.cat([codes, open_codes]))}

        self._fit_network(X, y, terms)

    def _outside_rows(self) -> Tensor | None:
        if self.outside is None:
            return None
        try:
            return to_tensor(self._rows(self.outside), self.device)
        except ValueError as error:
            raise ValueError(f"outside must hold rows like those of X: {error}") from None

    def _classify(self, X: Tensor) -> Classification:
        logits = self.network_(X).double() / self.temperature
        known, open_class = logits[:, :-1], logits[:, -1]
        return Classification(known.softmax(dim=1), open_class - known.amax(dim=1))


class Mixer:
    """Draws convex mixes of two rows of different classes.

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

    def __call__(self, count: int) -> Tensor:
        """Mixes with weights from 0 to 1, all of them equally likely."""
        one, other = self.pairs(count)
        share = torch.rand(count, 1, device=self.X.device)
        return share * self.X[one] + (1 - share) * self.X[other]

    def pairs(self, count: int) -> tuple[Tensor, Tensor]:
        """Indices of any row, and of any row of another class, in ``self.X``."""
        one = _draw(self.X, count)
        code = self.y[one]
        # Sorted by class, the rows of all other classes follow the last of this one, around the end.
        step = (torch.rand(count, dtype=torch.float64, device=code.device) * self.others[code]).long()
        return one, (self.end[code] + step) % len(self.X)


def _draw(rows: Tensor, count: int) -> Tensor:
    """Indices of rows, all of them equally likely."""
    return torch.randint(len(rows), (count,), device=rows.device)
