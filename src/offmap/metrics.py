"""Metrics of novelty detection and of open-set classification."""

from collections.abc import Hashable, Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pandas import isna
from scipy.stats import rankdata
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, roc_auc_score

__all__ = [
    "aupr_in",
    "aupr_out",
    "auroc",
    "detection_summary",
    "entity_auroc",
    "f1",
    "f1_known",
    "f1_open",
    "fpr95",
    "open_accuracy",
    "open_set_summary",
]

Labels = Iterable[Hashable]
_Codes = NDArray[np.intp]


def auroc(normal: ArrayLike, novel: ArrayLike) -> float:
    """Returns the probability that a novel row scores above a normal one; ties count half.

    AUROC = P(novelty⁺ > novelty⁻) + ½ P(novelty⁺ = novelty⁻).

    Args:
        normal: Novelty of the normal rows; higher is more novel.
        novel: Novelty of the novel rows.

    Example:
        >>> auroc(normal=[0.1, 0.4], novel=[0.4, 0.9])
        0.875
    """
    normal_ranks, novel_ranks = _ranks(normal, novel)
    return float(roc_auc_score(*_positives_last(normal_ranks, novel_ranks)))


def aupr_in(normal: ArrayLike, novel: ArrayLike) -> float:
    """Returns the average precision of finding the *normal* rows by low novelty.

    AP = Σₙ (Rₙ − Rₙ₋₁) Pₙ, a sum over thresholds without interpolation.

    Args:
        normal: Novelty of the normal rows; higher is more novel.
        novel: Novelty of the novel rows.

    Example:
        >>> aupr_in(normal=[0.1, 0.4], novel=[0.6, 0.9])
        1.0
    """
    normal_ranks, novel_ranks = _ranks(normal, novel)
    return float(average_precision_score(*_positives_last(-novel_ranks, -normal_ranks)))


def aupr_out(normal: ArrayLike, novel: ArrayLike) -> float:
    """Returns the average precision of finding the *novel* rows by high novelty.

    AP = Σₙ (Rₙ − Rₙ₋₁) Pₙ, a sum over thresholds without interpolation.

    Args:
        normal: Novelty of the normal rows; higher is more novel.
        novel: Novelty of the novel rows.

    Example:
        >>> aupr_out(normal=[0.1, 0.4], novel=[0.4, 0.9])
        0.8333333333333333
    """
    normal_ranks, novel_ranks = _ranks(normal, novel)
    return float(average_precision_score(*_positives_last(normal_ranks, novel_ranks)))


def fpr95(normal: ArrayLike, novel: ArrayLike, positive: Literal["novel", "normal"] = "novel") -> float:
    """Returns the false-positive rate at the strictest threshold that finds at least 95 % of the positive class.

    The papers disagree on which class is positive, and the two numbers can differ greatly on the same scores. Rows
    that tie with the threshold count as found.

    Args:
        normal: Novelty of the normal rows; higher is more novel.
        novel: Novelty of the novel rows.
        positive: The class to find: "novel" by high novelty, or "normal" by low novelty.

    Example:
        >>> fpr95(normal=[1, 2, 3, 4], novel=[3, 5])
        0.5
        >>> fpr95(normal=[1, 2, 3, 4], novel=[3, 5], positive="normal")
        0.5
    """
    if positive not in ("novel", "normal"):
        raise ValueError(f'positive must be "novel" or "normal", not {positive!r}')
    normal_ranks, novel_ranks = _ranks(normal, novel)
    if positive == "novel":
        found, mistaken = novel_ranks, normal_ranks
    else:
        found, mistaken = -normal_ranks, -novel_ranks
    # Integer arithmetic: 0.95 * n in floats can round to just above the wanted count.
    needed = -(-19 * len(found) // 20)
    threshold = np.sort(found)[-needed]
    return float(np.mean(mistaken >= threshold))


def detection_summary(normal: ArrayLike, novel: ArrayLike) -> dict[str, float]:
    """Returns all detection metrics by name.

    Args:
        normal: Novelty of the normal rows; higher is more novel.
        novel: Novelty of the novel rows.

    Example:
        >>> detection_summary(normal=[0.1, 0.2], novel=[0.8, 0.9])
        {'auroc': 1.0, 'aupr_in': 1.0, 'aupr_out': 1.0, 'fpr95_novel': 0.0, 'fpr95_normal': 0.0}
    """
    return {
        "auroc": auroc(normal, novel),
        "aupr_in": aupr_in(normal, novel),
        "aupr_out": aupr_out(normal, novel),
        "fpr95_novel": fpr95(normal, novel, positive="novel"),
        "fpr95_normal": fpr95(normal, novel, positive="normal"),
    }


def open_accuracy(y_true: Labels, y_pred: Labels, classes: Labels, unknown_label: Hashable) -> float:
    """Returns the share of correctly labelled rows, where all unknown classes count as one open class.

    Args:
        y_true: True labels; every label outside ``classes`` is open.
        y_pred: Predicted labels: a known class or ``unknown_label``.
        classes: The known classes.
        unknown_label: The prediction that stands for "none of the known classes".

    Example:
        >>> open_accuracy(["cat", "dog", "eel"], ["cat", "cat", "?"], classes=["cat", "dog"], unknown_label="?")
        0.6666666666666666
    """
    true, pred, _ = _codes(y_true, y_pred, classes, unknown_label)
    return float(accuracy_score(true, pred))


def f1(y_true: Labels, y_pred: Labels, classes: Labels, unknown_label: Hashable) -> float:
    """Returns the mean F1 over the known classes and the open class (macro F1).

    F1 = (1 / |C|) Σₖ 2 Pₖ Rₖ / (Pₖ + Rₖ), over the set C of classes that occur in ``y_true`` or in ``y_pred``, as in
    ``sklearn.metrics.f1_score(average="macro")``. A class that occurs in neither is left out.

    Takes the arguments of :func:`open_accuracy`.

    Example:
        >>> f1([0, 1, 7], [0, 1, -1], classes=[0, 1], unknown_label=-1)
        1.0
        >>> f1([0, 7], [0, -1], classes=[0, 1], unknown_label=-1)
        1.0
    """
    return open_set_summary(y_true, y_pred, classes, unknown_label)["f1"]


def f1_known(y_true: Labels, y_pred: Labels, classes: Labels, unknown_label: Hashable) -> float:
    """Returns the mean F1 over the known classes that occur in ``y_true`` or ``y_pred``; nan if none does.

    Takes the arguments of :func:`open_accuracy`.

    Example:
        >>> f1_known([0, 1, 7], [0, -1, -1], classes=[0, 1], unknown_label=-1)
        0.5
    """
    return open_set_summary(y_true, y_pred, classes, unknown_label)["f1_known"]


def f1_open(y_true: Labels, y_pred: Labels, classes: Labels, unknown_label: Hashable) -> float:
    """Returns the F1 of the open class; nan if it occurs neither in ``y_true`` nor in ``y_pred``.

    Takes the arguments of :func:`open_accuracy`.

    Example:
        >>> f1_open([0, 1, 7], [0, -1, -1], classes=[0, 1], unknown_label=-1)
        0.6666666666666666
    """
    return open_set_summary(y_true, y_pred, classes, unknown_label)["f1_open"]


def open_set_summary(y_true: Labels, y_pred: Labels, classes: Labels, unknown_label: Hashable) -> dict[str, float]:
    """Returns all open-set metrics by name.

    Takes the arguments of :func:`open_accuracy`.

    Example:
        >>> open_set_summary([0, 1, 7], [0, 1, -1], classes=[0, 1], unknown_label=-1)
        {'accuracy': 1.0, 'f1': 1.0, 'f1_known': 1.0, 'f1_open': 1.0}
    """
    true, pred, n_known = _codes(y_true, y_pred, classes, unknown_label)
    occurring = np.union1d(true, pred)
    per_class = f1_score(true, pred, labels=occurring, average=None)
    is_open = occurring == n_known
    return {
        "accuracy": float(accuracy_score(true, pred)),
        "f1": float(per_class.mean()),
        "f1_known": _mean_or_nan(per_class[~is_open]),
        "f1_open": _mean_or_nan(per_class[is_open]),
    }


def _mean_or_nan(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else np.nan


def _ranks(normal: ArrayLike, novel: ArrayLike) -> tuple[_Codes, _Codes]:
    """Replaces scores by their dense ranks: the metrics depend on order alone, so infinite scores are allowed."""
    first, second = _scores(normal, "normal"), _scores(novel, "novel")
    ranks = np.unique(np.concatenate([first, second]), return_inverse=True)[1].reshape(-1)
    return ranks[: len(first)], ranks[len(first) :]


def _scores(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        scores = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a 1-D array of numbers: {error}") from error
    if scores.ndim != 1 or not scores.size:
        raise ValueError(f"{name} must be a non-empty 1-D array of scores, not of shape {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError(f"{name} must hold no NaN, but {int(np.isnan(scores).sum())} of {scores.size} scores are NaN")
    return scores


def _positives_last(negative: _Codes, positive: _Codes) -> tuple[NDArray[np.bool_], _Codes]:
    """Joins two arrays of scores into scikit-learn's arguments: which are positive, and the scores."""
    return np.arange(len(negative) + len(positive)) >= len(negative), np.concatenate([negative, positive])


def _codes(y_true: Labels, y_pred: Labels, classes: Labels, unknown_label: Hashable) -> tuple[_Codes, _Codes, int]:
    """Numbers the known classes 0 to K − 1 and the open class K."""
    known = _labels(classes, "classes")
    true, pred = _labels(y_true, "y_true"), _labels(y_pred, "y_pred")
    code = {label: number for number, label in enumerate(known)}
    if len(code) < len(known) or unknown_label in code:
        raise ValueError(f"classes must be distinct and without unknown_label {unknown_label!r}, not {known}")
    if len(true) != len(pred):
        raise ValueError(f"y_true and y_pred must have the same length, not {len(true)} and {len(pred)}")
    _require_one_type(true, known)
    if strange := [label for label in pred if label not in code and label != unknown_label]:
        raise ValueError(f"y_pred holds {strange[0]!r}, neither one of classes nor unknown_label {unknown_label!r}")
    open_code = len(known)
    true_codes = np.array([code.get(label, open_code) for label in true], dtype=np.intp)
    return true_codes, np.array([code.get(label, open_code) for label in pred], dtype=np.intp), open_code


def _labels(values: Labels, name: str) -> list[Hashable]:
    # A list stays a list: NumPy would turn ["cat", -1] into two strings. Tensors would hash by identity.
    labels: list[Hashable] = values.tolist() if hasattr(values, "tolist") else list(values)
    flat = getattr(values, "ndim", 1) == 1 and all(isinstance(label, Hashable) for label in labels)
    if not flat or not labels:
        raise ValueError(f"{name} must be a non-empty 1-D sequence of labels")
    if any(_is_missing(label) for label in labels):
        raise ValueError(f"{name} must hold no NaN")
    return labels


def _is_missing(label: Any) -> bool:
    return label is not None and isna(label) is True


def _require_one_type(true: list[Hashable], known: list[Hashable]) -> None:
    """Refuses true labels that are written like a known class and are of another type: all would count as open."""
    classes = set(known)
    written = {str(label): label for label in known}
    for label in set(true) - classes:
        if str(label) in written:
            raise ValueError(f"y_true holds {label!r} where classes have {written[str(label)]!r}; give both one type")


def entity_auroc(familiarity: ArrayLike, normal: ArrayLike, novel: ArrayLike) -> NDArray[np.float64]:
    r"""AUROC of each entity between its normal and its novel rows; NaN where one kind is missing.

    With the ranks $R_i$ of the $n$ normal rows among these and the $m$ novel ones, it is
    $(\sum_i R_i - n(n + 1)/2) / nm$; ties count half.

    Args:
        familiarity: Familiarity of each row to each entity, rows × entities, higher for normal rows; such as
            ``familiarity(X)`` of an entity detector.
        normal: Which rows are normal for which entity, rows × entities of booleans.
        novel: Which rows are novel; rows that are neither do not count.

    Example:
        >>> familiarity = np.array([[3.0, 1.0], [2.0, 2.0], [1.0, 5.0]])
        >>> normal, novel = np.array([[1, 1], [0, 0], [0, 0]], bool), np.array([[0, 0], [1, 1], [0, 1]], bool)
        >>> entity_auroc(familiarity, normal, novel).tolist()
        [1.0, 0.0]
    """
    scores, high, low = _matrix(familiarity), _mask("normal", normal), _mask("novel", novel)
    if scores.ndim != 2 or not scores.shape == high.shape == low.shape:
        raise ValueError(
            "familiarity, normal and novel must be rows × entities, all of one shape; got "
            f"{scores.shape}, {high.shape} and {low.shape}"
        )
    if (both := high & low).any():
        row, entity = np.argwhere(both)[0].tolist()
        raise ValueError(f"row {row} is normal and novel for entity {entity}; it must be one of them, or neither")
    if np.isnan(scores[high | low]).any():
        raise ValueError("familiarity must hold no NaN where a row is normal or novel")
    found = np.full(scores.shape[1], np.nan)
    for entity, (values, above, below) in enumerate(zip(scores.T, high.T, low.T, strict=True)):
        n_above, n_below = int(above.sum()), int(below.sum())
        if n_above and n_below:
            ranks = rankdata(np.concatenate([values[above], values[below]]))[:n_above]
            found[entity] = (ranks.sum() - n_above * (n_above + 1) / 2) / (n_above * n_below)
    return found


def _matrix(familiarity: ArrayLike) -> NDArray[Any]:
    scores = np.asarray(familiarity)
    if scores.dtype.kind not in "biuf":
        raise ValueError(f"familiarity must hold numbers; got {scores.dtype}")
    return scores


def _mask(name: str, values: ArrayLike) -> NDArray[np.bool_]:
    given = np.asarray(values)
    mask = given.astype(bool)
    if not np.array_equal(given, mask):
        raise ValueError(f"{name} must hold booleans, or 0 and 1; -1 for the other kind would count as true")
    return mask
