"""From a model and rows to explanations."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from offmap.calibration.contract import PromisedModel
from offmap.explain.case import Case, prepare
from offmap.explain.composition import FloatArray, Indices
from offmap.explain.counterfactual import Counterfactual, smallest_changes
from offmap.explain.explanation import ClosestClass, EntityProfile, Explanation
from offmap.explain.neighbors import nearest
from offmap.explain.occlusion import occlusion
from offmap.explain.places import Places
from offmap.explain.reference import scoring_model
from offmap.explain.wording import reason_in_words
from offmap.parameters import Count, require
from offmap.verdict import Verdict

Method = Literal["occlusion", "exact"]


def explain(
    model: PromisedModel,
    X: Any,
    *,
    reference: Any = None,
    entities: ArrayLike | None = None,
    reference_entities: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    method: Method = "occlusion",
    counterfactual: bool = True,
    n_neighbors: int = 5,
    max_reference: int = 2_000,
) -> list[Explanation]:
    """Explains why each row is novel: which parts of it, compared with what, and what would make it normal.

    Rows of a table are explained by their columns, texts by their clauses (or phrases, where there is one clause only),
    images by places. No labels are needed. The replacements are scored in batches, so that many rows are explained
    in few calls of the model.

    Args:
        model: A fitted detector, open-set classifier or entity detector, or a ``Calibrated`` or ``Guarded`` model.
        X: The rows, as the model takes them.
        reference: Normal rows to compare with, such as the training rows; rows that the model flags are left out. A
            ``NearestNeighborDetector`` keeps its training rows; for all other models they must be given.
        entities: Entity of each row, for entity detectors.
        reference_entities: Entity of each reference row, for entity detectors: a row is compared with those of its
            own entity.
        feature_names: Names of the columns of an array.
        method: "occlusion" puts each part into the nearest normal rows and looks how much more novel they become. It
            works for every model, and names causes best. "exact" takes the shares of the novelty that the model itself
            gives, which sum to it: ``NearestNeighborDetector`` and ``MahalanobisDetector`` do, except with
            ``calibration="cv"``.
        counterfactual: Whether to search for the smallest change after which the row is normal.
        n_neighbors: How many of the nearest normal rows to compare with. Texts and images use fewer to replace parts.
        max_reference: Most reference rows to search, drawn at random from more.

    Reference: Zeiler and Fergus, Visualizing and Understanding Convolutional Networks, arXiv:1311.2901 (occlusion);
    Wachter, Mittelstadt and Russell, Counterfactual Explanations without Opening the Black Box, arXiv:1711.00399.

    Example:
        >>> from offmap.density import NearestNeighborDetector
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> detector = NearestNeighborDetector(random_state=0).fit(X)
        >>> [explanation] = explain(detector, [[0.1, 8.0, -0.2]], feature_names=["age", "amount", "hour"])
        >>> explanation.reasons(1)[0].part, explanation.counterfactual.names
        ('amount', ('amount',))
    """
    require("method", method, Method)
    for name, value in (("n_neighbors", n_neighbors), ("max_reference", max_reference)):
        require(name, value, Count)
    _require_fitted(model)
    if method == "exact":
        _require_sum(model)
    X = [X] if isinstance(X, str) else X
    case = prepare(
        model,
        X,
        reference=reference,
        entities=entities,
        reference_entities=reference_entities,
        feature_names=feature_names,
        max_reference=max_reference,
        n_neighbors=n_neighbors,
    )
    contributions, exact = _contributions(case, X, method)
    changes = _counterfactuals(case, contributions) if counterfactual else {}
    closest = _closest(case, contributions)
    return [
        _explanation(case, row, contributions[row], exact, closest[row], changes.get(row))
        for row in range(len(case.verdict))
    ]


def top_reasons(model: PromisedModel, X: Any, reference: Any = None, k: int = 3, **options: Any) -> pd.DataFrame:
    """The ``k`` strongest reasons of each row in words, as the columns "reason_1", "reason_2" and so on.

    Args:
        model: A fitted model.
        X: The rows.
        reference: Normal rows to compare with.
        k: How many reasons; a row that has fewer gets empty strings.
        options: Further arguments of ``explain``.

    Example:
        >>> from offmap.density import NearestNeighborDetector
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> detector = NearestNeighborDetector(random_state=0).fit(X)
        >>> top_reasons(detector, [[0.0, 30.0]], k=1)["reason_1"][0]
        'feature 1: 30 (usually -0.5612 to 1.042), 100 %'
    """
    require("k", k, Count)
    found = explain(model, X, reference=reference, counterfactual=False, **options)
    words = [[reason_in_words(reason) for reason in explanation.reasons(k)] for explanation in found]
    padded = [row + [""] * (k - len(row)) for row in words]
    return pd.DataFrame(padded, columns=reason_columns(k))


def reason_columns(k: int) -> list[str]:
    """The names of the columns of ``k`` reasons."""
    return [f"reason_{place}" for place in range(1, k + 1)]


def _require_fitted(model: Any) -> None:
    """Refuses what is no model with a promise, or none that is fitted."""
    if not isinstance(model, PromisedModel):
        raise ValueError(
            f"model must be one of Offmap; put the {type(model).__name__} into Calibrated or Guarded first"
        )
    check_is_fitted(model, "promise_")


def _require_sum(model: Any) -> None:
    """Refuses a model whose novelty is no sum over the features of a row."""
    scored = scoring_model(model)
    if hasattr(scored, "members_"):
        found = "that of folds (calibration='cv') is none"
    elif not hasattr(scored, "contributions") or hasattr(scored, "encoder_"):
        found = f"{type(scored).__name__} has none"
    else:
        return
    raise ValueError(f"method='exact' needs a score that is a sum over features; {found}; take method='occlusion'")


def _contributions(case: Case, X: Any, method: Method) -> tuple[FloatArray, bool]:
    if method == "occlusion":
        return occlusion(case.scorer, np.arange(len(case.verdict)), case.donors), False
    return case.composition.per_part(scoring_model(case.model).contributions(X)), True


def _counterfactuals(case: Case, contributions: FloatArray) -> dict[int, Counterfactual]:
    """The counterfactual of each flagged row, verified by one last call of the model."""
    flagged = np.flatnonzero(case.verdict.novel)
    if not len(flagged):
        return {}
    found = smallest_changes(case.scorer, flagged, case.neighbors.index[flagged], contributions[flagged])
    at = np.flatnonzero(found.found)
    rows, donors, replaced = flagged[at], found.donor[at], found.replaced[at]
    if not len(at):
        return {}
    verdict, changed = case.scorer.assess(rows, donors, replaced), case.composition.mixed(rows, donors, replaced)
    return {
        int(row): _counterfactual(case, int(row), int(donor), np.flatnonzero(parts), place, verdict, changed)
        for place, (row, donor, parts) in enumerate(zip(rows, donors, replaced, strict=True))
        if not verdict.novel[place]
    }


def _counterfactual(
    case: Case, row: int, donor: int, parts: Indices, place: int, verdict: Verdict, changed: Any
) -> Counterfactual:
    names, before = case.composition.names(row), case.composition.values(row)
    usual = case.composition.usual(np.array([donor]))
    return Counterfactual(
        changed=tuple(parts.tolist()),
        names=tuple(names[j] for j in parts),
        before=tuple(before[j] for j in parts),
        after=tuple(_only(usual[j]) for j in parts) if usual else (),
        row=changed.iloc[place] if hasattr(changed, "iloc") else changed[place],
        donor=int(case.kept[donor]),
        novelty=float(verdict.novelty[place]),
        p_value=None if verdict.p_value is None else float(verdict.p_value[place]),
    )


def _only(usual: Any) -> Any:
    """The value that is usual in a single row."""
    return next(iter(usual))


def _closest(case: Case, contributions: FloatArray) -> list[ClosestClass | None]:
    """The closest class of each row, and the contributions compared with the nearest rows of that class."""
    label, proba = case.verdict.closest, case.verdict.proba
    if label is None or proba is None:
        return [None] * len(case.verdict)
    of_class = label[:, None] == np.asarray(case.reference_verdict.closest)[None]
    allowed = of_class & ~case.reference_verdict.novel[None]
    known = allowed.any(axis=1)
    donors = nearest(case.distances, allowed, case.composition.most_donors).index
    against = contributions.copy()
    other = np.flatnonzero(known & (donors != case.donors).any(axis=1))
    if len(other):
        against[other] = occlusion(case.scorer, other, donors[other])
    rows = zip(label, proba.max(axis=1), against, known, strict=True)
    return [ClosestClass(name, float(share), phi if has else None) for name, share, phi, has in rows]


def _profile(case: Case, row: int) -> EntityProfile | None:
    if case.scorer.entities is None:
        return None
    own = np.flatnonzero(case.allowed[row])
    return EntityProfile(case.scorer.entities[row], len(own), case.composition.usual(own) if len(own) else ())


def _explanation(
    case: Case,
    row: int,
    contributions: FloatArray,
    exact: bool,
    closest: ClosestClass | None,
    counterfactual: Counterfactual | None,
) -> Explanation:
    composition, verdict, model = case.composition, case.verdict, case.model
    by_class = getattr(model, "class_promise_", None) is not None
    neighbors, count = case.neighbors.index[row], int(composition.counts[row])
    return Explanation(
        row=row,
        kind=composition.kind,
        novelty=float(verdict.novelty[row]),
        threshold=None if by_class else float(model.threshold_),
        alpha=float(model.alpha) if by_class else None,
        p_value=None if verdict.p_value is None else float(verdict.p_value[row]),
        novel=bool(verdict.novel[row]),
        parts=composition.names(row),
        values=composition.values(row),
        usual=composition.usual(neighbors),
        contributions=contributions[:count],
        exact=exact,
        neighbors=case.kept[neighbors],
        distances=case.neighbors.distance[row],
        neighbor_rows=tuple(composition.reference(int(each)) for each in neighbors),
        closest=closest,
        profile=_profile(case, row),
        counterfactual=counterfactual,
        image=composition.image(row) if isinstance(composition, Places) else None,
        grid=composition.grid if isinstance(composition, Places) else None,
    )
