"""Promises: thresholds and p-values that hold at a stated false-alarm rate, for any model."""

from offmap.calibration.calibrated import Calibrated
from offmap.calibration.conformal import CalibrationWarning, p_values, threshold
from offmap.calibration.fingerprint import Fingerprint
from offmap.calibration.guarded import Guarded
from offmap.calibration.promise import Promise, RateInterval
from offmap.calibration.split import hold_out

__all__ = [
    "Calibrated",
    "CalibrationWarning",
    "Fingerprint",
    "Guarded",
    "Promise",
    "RateInterval",
    "hold_out",
    "p_values",
    "threshold",
]
