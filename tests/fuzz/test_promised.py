"""Damaged files of ``Calibrated`` and ``Guarded``, loaded with the model that they were saved without."""

import random
import resource
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression

import offmap
from offmap import Calibrated, Guarded, tensorfile
from offmap.calibration import Reweighted
from offmap.density import NearestNeighborDetector
from offmap.persist import ModelFileError
from tests.fuzz.models import contents, damaged, edited, require_printable
from tests.fuzz.originals import LABELS, ROWS

CASES = 80


def saved() -> dict[str, tuple[Any, Any]]:
    """Fitted models, and what their files are loaded with."""
    forest, classifier = IsolationForest(n_estimators=3, random_state=0), LogisticRegression()
    detector = Calibrated(forest, random_state=0).fit(ROWS)
    folds = Calibrated(forest, calibration="cv", folds=2, random_state=0).fit(ROWS)
    guarded = Guarded(classifier, novelty_score="auto", by_class="actual", random_state=0).fit(ROWS, LABELS)
    by_fold = Guarded(classifier, calibration="cv", folds=2, by_class="predicted", random_state=0).fit(ROWS, LABELS)
    nearest = NearestNeighborDetector(random_state=0).fit(ROWS)
    return {
        "Calibrated": (detector, detector.estimator_),
        "Calibrated, CV+": (folds, [member.estimator_ for member in folds.members_]),
        "Guarded": (guarded, guarded.classifier_),
        "Guarded, CV+": (by_fold, [member.classifier_ for member in by_fold.members_]),
        "Reweighted": (Reweighted(nearest).fit(ROWS, ROWS + 0.1), None),
    }


def outcome(path: Path, foreign: Any) -> str:
    """Loads and asks; only documented errors may come."""
    try:
        model = offmap.load(path, model=foreign)
    except ModelFileError as error:
        require_printable(error)
        return "refused"
    try:
        model.assess(ROWS[:5])
        if getattr(model, "class_promise_", None) is not None:
            model.predict_set(ROWS[:5])
    except ValueError as error:
        require_printable(error)
        return "unfit rows"
    return "scored"


@pytest.mark.parametrize("name", ["Calibrated", "Calibrated, CV+", "Guarded", "Guarded, CV+", "Reweighted"])
def test_a_damaged_file_is_refused_or_scores(name: str, tmp_path: Path) -> None:
    draw, path = random.Random(0), tmp_path / "model.safetensors"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, foreign = saved()[name]
        model.save(path)
        whole, (content,) = path.read_bytes(), contents([path])
        assert outcome(path, foreign) == "scored"
        found = []
        for _ in range(CASES):
            if draw.random() < 0.2:
                path.write_bytes(damaged(whole, draw))
                assert outcome(path, foreign) == "refused"
            else:
                tensorfile.write(path, edited(content, draw))
                found.append(outcome(path, foreign))
    assert np.mean([each == "refused" for each in found]) > 0.5


def test_a_large_number_of_features_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    NearestNeighborDetector(calibration=0.5, random_state=0).fit(ROWS).save(path)
    (content,) = contents([path])
    content["attributes"]["n_features_in_"] = 10**9
    tensorfile.write(path, content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome(path, None)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
