"""Does an exported graph say what the model says? Asked on rows before the graph is written."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.calibration import Guarded
from offmap.errors import WorkFailed
from offmap.export.check_rows import Inputs, assessed, check_rows
from offmap.onnx_graphs import session
from offmap.scores import Outputs
from offmap.verdict import Verdict

# Single precision rounds in another order, and a score of ranks then steps: differences up to this share of the spread
# of the scores are rounding. Those of a wrong graph are of the size of the spread.
_TOLERANCE = 1e-2


@dataclass(frozen=True, kw_only=True)
class Check:
    """How an exported graph compares with the library on the same rows.

    Args:
        rows: Rows that were compared.
        given: How many of them the user gave; the others are the fingerprint's, or random.
        novel: How many of them the library flags.
        difference: Largest difference of the novelty, as a share of the spread of the calibration scores.
        decisions: Rows that lie so close to the threshold that rounding decided them differently.
    """

    rows: int
    given: int
    novel: int
    difference: float
    decisions: int

    def __str__(self) -> str:
        source = f"{self.given} of them given" if self.given else "none of them given"
        return (
            f"{self.rows} rows ({source}, {self.novel} novel) score as in the library, up to {self.difference:.1g} of "
            f"the spread of the calibration scores; {self.decisions} decisions differ at the threshold"
        )


def check(graph: Any, model: Any, given: Any = None) -> Check:
    """Compares a graph with its model, row by row.

    Calibration rows are not kept by a model, only their scores. So the rows are those that the user gives, and 256
    random ones: around the means that the model learnt, at half, one and three times its standard deviations. A
    ``Guarded`` model has kept a few of its calibration rows.

    Args:
        graph: The ONNX model.
        model: The fitted model.
        given: Rows as the model reads them after its encoder, if it has one.

    Raises:
        WorkFailed: The graph and the library differ by more than rounding.
    """
    inputs = check_rows(model, given)
    verdict = _library(model, inputs)
    found = dict(zip((o.name for o in graph.graph.output), _run(graph, inputs), strict=True))
    slack = _slack(model, verdict.novelty)
    same_infinity = verdict.novelty == found["novelty"]
    with np.errstate(invalid="ignore"):
        gap = np.where(same_infinity, 0.0, np.abs(verdict.novelty - found["novelty"]))
    _require("novelty", gap <= slack)
    near = np.abs(verdict.novelty - model.promise_.threshold_) <= slack
    _require("novel", (verdict.novel == found["novel"]) | near)
    if verdict.p_value is not None:
        low, high = (model.promise_.p_value(verdict.novelty + sign * slack) for sign in (1, -1))
        _require("p_value", (found["p_value"] >= low - 1e-9) & (found["p_value"] <= high + 1e-9))
    if verdict.label is not None:
        _require("label", (verdict.label.astype(str) == found["label"].astype(str)) | near | _tied(verdict))
    return Check(
        rows=len(verdict),
        given=0 if given is None else len(given),
        novel=int(verdict.novel.sum()),
        difference=float(np.max(gap / slack) * _TOLERANCE),
        decisions=int((verdict.novel != found["novel"]).sum()),
    )


def _require(name: str, right: NDArray[np.bool_]) -> None:
    if not right.all():
        raise WorkFailed(
            f"the exported graph differs from the library in {name} of {(~right).sum()} of {len(right)} rows, first in "
            f"row {int((~right).argmax())}; nothing was written"
        )


def _slack(model: Any, novelty: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far the novelty of each row may be off: a share of the spread of the scores, or of the score itself."""
    held_out = model.promise_.calibration_novelty_ if model.promise_.has_rows else novelty
    finite = held_out[np.isfinite(held_out)]
    spread = float(np.std(finite)) if len(finite) else 0.0
    size = np.abs(np.where(np.isfinite(novelty), novelty, 0.0))
    return np.asarray(_TOLERANCE * np.maximum(max(spread, 1e-9), size), dtype=np.float64)


def _tied(verdict: Verdict) -> NDArray[np.bool_]:
    """Whether the two likeliest classes of a row are told apart by rounding only."""
    assert verdict.proba is not None
    second, first = np.sort(verdict.proba, axis=1)[:, -2:].T
    return np.asarray(first - second <= _TOLERANCE * first)


def _run(graph: Any, inputs: Inputs) -> list[NDArray[Any]]:
    found: list[NDArray[Any]] = session(graph.SerializeToString()).run(None, inputs)
    return found


def _library(model: Any, inputs: Inputs) -> Verdict:
    if isinstance(model, Guarded):
        return model.assess(inputs["X"] if "X" in inputs else Outputs(**inputs))
    return assessed(model, inputs["X"])
