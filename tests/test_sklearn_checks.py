"""scikit-learn's own checks, over every public estimator."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from offmap.base import Detector, OpenSetClassifier
from tests.estimators import CLASSES, small

# The checks that cannot apply, each with its reason: the only list of them.
_UNKNOWN = "the check asks that predict is the argmax of predict_proba; an open-set classifier may also say unknown"
_TRIMMED = "the check asks that predict flags a share contamination of the rows; here it is trimmed, and alpha decides"
CANNOT_APPLY: dict[type, dict[str, str]] = {
    Detector: {"check_outliers_fit_predict": _TRIMMED},
    OpenSetClassifier: {"check_classifiers_train": _UNKNOWN},
}


def cannot_apply(estimator: Any) -> dict[str, str]:
    lists = [reasons for cls, reasons in CANNOT_APPLY.items() if isinstance(estimator, cls)]
    return {check: reason for reasons in lists for check, reason in reasons.items()}


@pytest.mark.filterwarnings("ignore::offmap.calibration.CalibrationWarning")
@parametrize_with_checks([small(cls) for cls in CLASSES], expected_failed_checks=cannot_apply)  # type: ignore[untyped-decorator]
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)
