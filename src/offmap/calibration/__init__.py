"""Promises: thresholds and p-values that hold at a stated false-alarm rate, for any model."""

from offmap.calibration.budget import Budget
from offmap.calibration.calibrated import Calibrated
from offmap.calibration.conditional import conditional_p_values, rows_needed
from offmap.calibration.conformal import CalibrationWarning, p_values, random_p_values, threshold
from offmap.calibration.fingerprint import Fingerprint
from offmap.calibration.guarded import Guarded
from offmap.calibration.mondrian import ClassPromise
from offmap.calibration.promise import Promise, RateInterval
from offmap.calibration.selection import rows_needed_to_select, select_rows
from offmap.calibration.shift import Reweighted, weighted_p_values
from offmap.calibration.split import Split, hold_out
from offmap.calibration.suggestion import SuggestedRate, suggest_rate
from offmap.calibration.together import assess_together, pooled_novelty

__all__ = [
    "Budget",
    "Calibrated",
    "CalibrationWarning",
    "ClassPromise",
    "Fingerprint",
    "Guarded",
    "Promise",
    "RateInterval",
    "Reweighted",
    "Split",
    "SuggestedRate",
    "assess_together",
    "conditional_p_values",
    "hold_out",
    "p_values",
    "pooled_novelty",
    "random_p_values",
    "rows_needed",
    "rows_needed_to_select",
    "select_rows",
    "suggest_rate",
    "threshold",
    "weighted_p_values",
]
