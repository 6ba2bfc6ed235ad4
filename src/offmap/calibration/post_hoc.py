"""From what a user calls a score to one that is fitted on known rows."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor

from offmap.scores import (
    FDBD,
    Energy,
    KNearest,
    MaxSoftmax,
    NNGuide,
    Outputs,
    RankMean,
    RelativeMahalanobis,
    Score,
    named_score,
)

# Far more than rounding leaves of log 1, and less than any network's energies differ by.
_SAME_ENERGY = 1e-4


def make_score(wanted: Any, known: Outputs | None) -> Score:
    """The unfitted score of a name, of "auto", or a copy of the one given.

    "auto" is the mean rank of the nearest row, relative Mahalanobis and fDBD, and the largest probability where there
    are no features to compare. Both were chosen on other data sets than those of the benchmarks; picking a score per
    data set, by known classes that are held out as if they were unknown, did worse.

    Example:
        >>> make_score("energy", None), make_score("auto", None)
        (Energy(), MaxSoftmax())
    """
    if isinstance(wanted, Score):
        return clone(wanted)
    if wanted != "auto":
        return named_score(wanted)
    if known is None or known.features is None:
        return MaxSoftmax()
    return RankMean(scores=(KNearest(), RelativeMahalanobis(), FDBD()))


def wants_features(wanted: Any) -> bool:
    """Whether the score of a name, "auto" or the one given reads features where there are some.

    Example:
        >>> wants_features("auto"), wants_features("k_nearest"), wants_features("max_softmax")
        (True, True, False)
    """
    return wanted == "auto" or "features" in make_score(wanted, None).reads


def fitted_score(score: Score, known: Outputs | None, codes: Tensor | None) -> Score:
    """Fits the score on the outputs of known rows; scores that learn nothing need none."""
    if known is None and score.needs_rows:
        raise ValueError(
            f"novelty_score {type(score).__name__} compares rows with known ones; give calibrate reference= and "
            "y_reference=, such as the training rows, or choose 'max_softmax', 'max_logit', 'energy' or 'gen'"
        )
    return score if known is None else score.fit(known, codes)


def require_energy(score: Score | None, logits: Tensor) -> None:
    """Refuses scores of the energy where it says nothing: that of logarithms of probabilities is 0 for every row."""
    reads_energy = any(isinstance(part, Energy | NNGuide) for part in getattr(score, "scores", (score,)))
    if reads_energy and bool((logits.double().logsumexp(dim=1).abs() < _SAME_ENERGY).all()):
        raise ValueError(
            f"novelty_score {type(score).__name__} reads the energy, which is the same for all rows: the logits are "
            "logarithms of probabilities; choose 'max_softmax', 'gen' or a score of the features alone"
        )


def codes_of(labels: NDArray[Any], classes: NDArray[Any]) -> Tensor:
    """The place of each label among the classes.

    Example:
        >>> codes_of(np.array(["bee", "ant"]), np.array(["ant", "bee"]))
        tensor([1, 0])
    """
    places = {name: place for place, name in enumerate(classes.tolist())}
    strange = sorted({label for label in labels.tolist() if label not in places}, key=str)
    if strange:
        known = ", ".join(map(repr, list(places)[:10]))
        raise ValueError(
            f"y_reference (y of fit) holds the label {strange[0]!r}, which the classifier never saw; it knows {known}"
        )
    return torch.tensor(np.array([places[label] for label in labels.tolist()], dtype=np.int64))
