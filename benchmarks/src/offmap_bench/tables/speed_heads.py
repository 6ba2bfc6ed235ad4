"""The heads of ANS trained side by side, compared with one after another as in the thesis."""

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from torch import Tensor, nn
from torch.optim import AdamW

from offmap.metrics import open_set_summary
from offmap.nets import mlp
from offmap.nets.stacked import StackedLinear
from offmap.openset import ANSClassifier
from offmap.openset.negatives import Shell, ascend
from offmap.random_state import local_seed
from offmap.ratio import loss_on_p, loss_on_q
from offmap.train import Batch, Batches, descend, train
from offmap_bench.table import Table
from offmap_bench.tables.open_intents import column, own, setting

SCORED = 100_000
# The heads of the thesis, with radii measured as its text says.
THESIS: dict[str, Any] = {"head_hidden": (256, 64), "radius_factor": 1.0, "negative_weight": 0.5}


@final
@dataclass(kw_only=True, eq=False, repr=False)
class OneAfterAnother(BaseEstimator):
    """Trains the heads of an ANS classifier one after another, each in its own loop over all rows.

    Args:
        classifier: The ANS classifier: all its parts but the heads are fitted as usual.
        head_epochs: Passes over the rows per head.
        head_lr: Learning rate of the heads.
        random_state: Seed.

    Attributes:
        classifier_: The fitted classifier, with the heads in place.
        unknown_label_: What ``predict`` answers for rejected rows.
    """

    classifier: ANSClassifier = field(default_factory=lambda: own(ANSClassifier, **THESIS))
    head_epochs: int = 20
    head_lr: float = 1e-3
    random_state: int | None = None

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        """Fits the classifier with a single step for its heads, then replaces them."""
        self.classifier_ = self._without_heads(X, y)
        self.unknown_label_ = self.classifier_.unknown_label_
        codes = torch.from_numpy(np.searchsorted(self.classifier_.classes_, y))
        with torch.no_grad():
            Z = self.classifier_.network_.space(torch.from_numpy(X.reshape(len(X), -1).astype(np.float32)))
        with local_seed(self.random_state or 0):
            self._fit_heads(Z, codes)
        return self

    def _without_heads(self, X: NDArray[Any], y: NDArray[Any]) -> ANSClassifier:
        """Fits all but the heads."""
        return clone(self.classifier).set_params(steps=1, random_state=self.random_state).fit(X, y)

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Returns the label of each row, or ``unknown_label_``."""
        return self.classifier_.predict(X)

    def novelty(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Returns the novelty of each row."""
        return self.classifier_.novelty(X)

    def _fit_heads(self, Z: Tensor, y: Tensor) -> None:
        model = self.classifier_
        shell = Shell.around(Z, y, len(model.classes_), factor=model.radius_factor, gamma=model.gamma)
        for place in range(len(model.classes_)):
            head = mlp([Z.shape[1], *model.head_hidden, 1], model.dropout)
            self._fit_head(head, place, Z, y, shell)
            put_head(model, head, place)

    def _fit_head(self, head: nn.Sequential, place: int, Z: Tensor, y: Tensor, shell: Shell) -> None:
        optimizer, model = AdamW(head.parameters(), lr=self.head_lr), self.classifier_

        def terms(batch: Batch) -> dict[str, Tensor]:
            rows, codes = batch
            logits, mine = head(rows).squeeze(1), codes == place
            found = {"own": loss_on_p(logits[mine]).sum(), "rest": loss_on_q(logits[~mine]).sum()}
            which = torch.full((int(mine.sum()),), place)
            size = model.ascent_size * shell.inner[which]
            offset = ascend(
                lambda moved: head(moved).squeeze(1), rows[mine], shell.start(which), model.ascent_steps, size
            )
            negatives = rows[mine] + shell.project(offset, which)
            return found | {"negatives": model.negative_weight * loss_on_q(head(negatives)).sum()}

        state: dict[str, Any] = {"head": head, "optimizer": optimizer}
        train(descend(optimizer, terms), Batches((Z, y), 128), epochs=self.head_epochs, state=state)


def put_head(model: ANSClassifier, head: nn.Sequential, place: int) -> None:
    """Copies a head to its place among the stacked heads of ``model``."""
    layers = [layer for layer in head if isinstance(layer, nn.Linear)]
    stacked = [layer for layer in model.network_.heads if isinstance(layer, StackedLinear)]
    with torch.no_grad():
        for layer, target in zip(layers, stacked, strict=True):
            assert target.bias is not None
            target.weight[place], target.bias[place, 0] = layer.weight.T, layer.bias


def measure(method: Any, title: str, seed: int) -> dict[str, float]:
    """Measures the seconds to fit and to score, and the resulting quality."""
    X, y, _, X_test, y_test, known = setting(title, seed)
    start = perf_counter()
    method.set_params(random_state=seed).fit(X, y)
    fitted = perf_counter()
    found = open_set_summary(y_test, method.predict(X_test), known, method.unknown_label_)
    with local_seed(seed):
        many = torch.randn(SCORED, X.shape[1]).numpy().astype(np.float32)
    scoring = perf_counter()
    method.novelty(many)
    times = {"fit seconds": fitted - start, "seconds for 100,000 rows": perf_counter() - scoring}
    return times | {name: found[name] for name in ("f1", "accuracy")}


TABLES = (
    Table(
        name="speed-heads",
        source="No paper: the speed of this toolkit",
        caption="ANS with 112 heads on sentence embeddings: all heads side by side, and one after another.",
        rows={
            "one after another": OneAfterAnother(classifier=own(ANSClassifier, **THESIS)),
            "all at once": own(ANSClassifier),
        },
        columns=(column("CLINC", 75),),
        metrics=("fit seconds", "seconds for 100,000 rows", "f1", "accuracy"),
        measure=measure,
        seeds={"cpu": range(2)},
        profiles={"cpu": {}},
        needs=("clinc",),
        formats={"fit seconds": ".1f", "seconds for 100,000 rows": ".1f", "f1": ".2%", "accuracy": ".2%"},
        notes="One after another is the thesis's way: each head makes 20 passes over all rows of the known classes at "
        "a learning rate of 1e-3. Both ways first train the same classifier of the known classes, and score with the "
        "same code. All at once are the default heads, which have one hidden layer. One thread.",
    ),
)
