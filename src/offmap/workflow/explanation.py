"""Why rows of a data file are novel."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from offmap.collaborative.base import EntityDetector
from offmap.data import Data
from offmap.explain import Explanation, explain, top_reasons
from offmap.explain.build import reason_columns
from offmap.explain.wording import reason_in_words
from offmap.workflow.entities import is_known
from offmap.workflow.fitting import Estimator, entities_of
from offmap.workflow.scoring import require_readable, rows_for


def explain_rows(
    model: Estimator,
    data: Data,
    reference: Data | None = None,
    *,
    rows: Sequence[int] | None = None,
    counterfactual: bool = True,
) -> list[Explanation]:
    """Says why rows are novel, compared with the normal rows of ``reference``.

    Args:
        model: A fitted model.
        data: The rows.
        reference: Normal rows; it may be left out for a model that keeps its training rows.
        rows: Which rows to explain; by default all. Their numbers are those of ``data``.
        counterfactual: Whether to search for the smallest change after which a row is normal.

    Example:
        >>> from offmap.data import load
        >>> from offmap.workflow import configure, fit_model
        >>> cells = load("breast-cancer")
        >>> model = fit_model(configure("nearest-neighbor"), cells)
        >>> [explanation] = explain_rows(model, cells, rows=[17])
        >>> explanation.row, len(explanation.parts)
        (17, 30)
    """
    chosen = np.arange(len(data)) if rows is None else np.asarray(rows, dtype=np.intp)
    for row in chosen.tolist():
        if not 0 <= row < len(data):
            raise ValueError(f"row must be from 0 to {len(data) - 1}, the rows of {data.name}; got {row}")
    given = _compared_with(model, data, reference, chosen)
    shown = _safe_indexing(rows_for(model, data), chosen)
    found = explain(model, shown, counterfactual=counterfactual, **given)
    return [replace(each, row=int(row)) for each, row in zip(found, chosen, strict=True)]


def reasons_of(
    model: Estimator, data: Data, reference: Data | None, k: int, rows: Sequence[int] | None = None
) -> pd.DataFrame:
    """The ``k`` strongest reasons of each row in words, one column each; the index holds the numbers of the rows.

    Rows of entities that the model does not know are left out: they are novel for no other reason.
    """
    chosen = np.arange(len(data)) if rows is None else np.asarray(rows, dtype=np.intp)
    if isinstance(model, EntityDetector):
        chosen = chosen[is_known(model, entities_of(model, data)[chosen])]
    if len(chosen) == 0:
        return pd.DataFrame(index=chosen, columns=reason_columns(k))
    options = _compared_with(model, data, reference, chosen)
    shown = _safe_indexing(rows_for(model, data), chosen)
    return top_reasons(model, shown, options.pop("reference"), k, **options).set_axis(chosen, axis=0)


def telling(model: Estimator, data: Data, reference: Data) -> Callable[[Sequence[int]], list[str]]:
    """What says in words why rows are novel, given their positions."""

    def told(rows: Sequence[int]) -> list[str]:
        found = explain_rows(model, data, reference, rows=rows, counterfactual=False)
        return ["\n".join(map(reason_in_words, each.reasons(3))) for each in found]

    return told


def _compared_with(model: Estimator, data: Data, reference: Data | None, chosen: NDArray[np.intp]) -> dict[str, Any]:
    """The arguments of ``explain`` that say what rows are compared with."""
    for given in (data,) if reference is None else (data, reference):
        require_readable(model, given)
    found = {"reference": None if reference is None else rows_for(model, reference)}
    if not isinstance(model, EntityDetector):
        return found
    others = None if reference is None else entities_of(model, reference)
    return found | {"entities": entities_of(model, data)[chosen], "reference_entities": others}
