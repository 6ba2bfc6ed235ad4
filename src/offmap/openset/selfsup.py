"""Self-supervised open samples: mixes of known rows as a class of their own."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from offmap.arrays import to_tensor
from offmap.base import Judgement
from offmap.openset.closed import ClosedSetClassifier
from offmap.parameters import Positive
from offmap.train import Batch


@dataclass(kw_only=True, eq=False, repr=False)
class SelfSupClassifier(ClosedSetClassifier):
    r"""Trains one class more than there are, on rows made to be open: mixes of two known rows of different classes.

    Each batch draws for each of its rows $x_i$ another $x_j$ with $y_j \ne y_i$ and $\theta \sim U(0, 1)$, and
    $\theta x_i + (1 - \theta) x_j$ is a row of the open class. With logits $v$, $p$ is the softmax of $v / \tau$ over
    the known classes and the open one, and the novelty is $\log p_{\text{open}} - \log \max_k p_k$; its own rule
    rejects above 0, where the open class wins.

    Args:
        temperature: $\tau$.
        outside: Rows from elsewhere, of the form of ``X``, that train the open class too: as many each batch as it
            has rows, drawn at random.

    Reference: Zhan et al., Out-of-Scope Intent Detection with Self-Supervision and Discriminative Training,
    arXiv:2106.08616, equations 1 and 2.

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
    outside: NDArray[Any] | None = None

    def _build(self) -> None:
        self.network_ = self._closed_network(outputs=len(self.classes_) + 1)

    def _fit(self, X: Tensor, y: Tensor) -> None:
        mix, outside = Mixer(X, y), self._outside_rows()

        def terms(batch: Batch) -> dict[str, Tensor]:
            rows, codes = batch
            unknown = [mix(rows, codes)] + ([] if outside is None else [_draw(outside, len(rows))])
            logits = self.network_(torch.cat([rows, *unknown])) / self.temperature
            open_codes = codes.new_full((len(logits) - len(rows),), len(self.classes_))
            return {"classification": cross_entropy(logits, torch.cat([codes, open_codes]))}

        self._fit_network(X, y, terms)

    def _outside_rows(self) -> Tensor | None:
        if self.outside is None:
            return None
        try:
            return to_tensor(self._enter(self.outside), self.device)
        except ValueError as error:
            raise ValueError(f"outside must hold rows like those of X: {error}") from None

    def _judge(self, X: Tensor) -> Judgement:
        logits = self.network_(X).double() / self.temperature
        known, open_class = logits[:, :-1], logits[:, -1]
        return Judgement(known.softmax(dim=1), open_class - known.amax(dim=1))


class Mixer:
    """Mixes rows with training rows of other classes.

    Args:
        X: The training rows.
        y: Their classes, of which there are at least two.
    """

    def __init__(self, X: Tensor, y: Tensor) -> None:
        counts = torch.bincount(y)
        self.by_class = X[y.argsort(stable=True)]
        self.end = counts.cumsum(0)
        self.others = len(y) - counts

    def partners(self, codes: Tensor) -> Tensor:
        """For each code one training row of another class, all of them equally likely."""
        # In order of class, the rows of all other classes follow the last of this one, around the end.
        steps = (torch.rand(len(codes), dtype=torch.float64, device=codes.device) * self.others[codes]).long()
        return self.by_class[(self.end[codes] + steps) % len(self.by_class)]

    def __call__(self, rows: Tensor, codes: Tensor) -> Tensor:
        """One mix a row."""
        share = torch.rand(len(rows), 1, device=rows.device)
        return share * rows + (1 - share) * self.partners(codes)


def _draw(rows: Tensor, count: int) -> Tensor:
    return rows[torch.randint(len(rows), (count,), device=rows.device)]
