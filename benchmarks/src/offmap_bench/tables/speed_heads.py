"""All heads of ANS at once, beside one head after another, as the thesis trains them."""

from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.optim import AdamW

from offmap.metrics import open_set_summary
from offmap.nets import mlp
from offmap.openset import ANSClassifier
from offmap.openset.negatives import Shell, ascend
from offmap.random_state import local_seed
from offmap.train import Batch, Batches, descend, train
from offmap_bench.table import Table
from offmap_bench.tables.open_intents import column, own, setting

SCORED = 100_000


class OneAfterAnother(ANSClassifier):
    """ANS with each head trained alone, in a loop of its own over all rows, as the thesis does it."""

    head_epochs = 20
    head_lr = 1e-3

    def _fit_heads(self, Z: Tensor, y: Tensor) -> dict[str, list[float]]:
        shell = Shell.around(Z, y, len(self.classes_), radius=self.radius, gamma=self.gamma)
        for place in range(len(self.classes_)):
            head = mlp([Z.shape[1], *self.head_hidden, 1], self.dropout)
            self._fit_head(head, place, Z, y, shell)
            self._put(head, place)
        return {}

    def _fit_head(self, head: nn.Sequential, place: int, Z: Tensor, y: Tensor, shell: Shell) -> None:
        optimizer = AdamW(head.parameters(), lr=self.head_lr)

        def terms(batch: Batch) -> dict[str, Tensor]:
            rows, codes = batch
            sign = torch.where(codes == place, -1.0, 1.0)
            found = {"rest": softplus(sign * head(rows).squeeze(1)).sum()}
            mine = rows[codes == place]
            if len(mine):
                which = torch.full((len(mine),), place)
                offset = ascend(head, mine, shell.start(which), self.ascent_steps, self.ascent_size)
                made_up = mine + shell.project(offset, which)
                found["negatives"] = self.negatives * softplus(head(made_up)).sum()
            return found

        state: dict[str, Any] = {"head": head, "optimizer": optimizer}
        train(descend(optimizer, terms), Batches((Z, y), 128), epochs=self.head_epochs, state=state)

    def _put(self, head: nn.Sequential, place: int) -> None:
        """Copies a head to its place among the stacked ones, which score alike."""
        layers = [layer for layer in head if isinstance(layer, nn.Linear)]
        stacked = self.network_.heads
        with torch.no_grad():
            for layer, weight, bias in zip(layers, stacked.weights, stacked.biases, strict=True):
                weight[place], bias[place, 0] = layer.weight.T, layer.bias


def measure(method: ANSClassifier, title: str, seed: int) -> dict[str, float]:
    """Seconds to fit and to score, and the quality that comes of it."""
    X, y, X_test, y_test, known = setting(title, seed)
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
        caption="ANS with 112 heads, from sentence embeddings: all heads at once, and one head after another.",
        rows={
            "one after another": own(OneAfterAnother),
            "all at once": own(ANSClassifier),
            "all at once, 100 steps": own(ANSClassifier).set_params(steps=100),
        },
        columns=(column("CLINC", 75),),
        metrics=("fit seconds", "seconds for 100,000 rows", "f1", "accuracy"),
        measure=measure,
        seeds={"cpu": range(1)},
        profiles={"cpu": {}},
        needs=("clinc",),
        formats={"fit seconds": ".1f", "seconds for 100,000 rows": ".1f", "f1": ".2%", "accuracy": ".2%"},
        notes="One after another is the thesis's way: each head makes 20 passes over all rows of the known classes, at "
        "its step size of 1e-3. Both train the same classifier of the known classes before, and score with one code. "
        "The default of 400 steps was chosen on known classes of all three sets; 100 are shown because CLINC needs no "
        "more. One thread.",
    ),
)
