"""Drift: notices when the rows that a model meets are no longer like those it was calibrated on."""

from offmap.monitor.drift import Drift
from offmap.monitor.drift_monitor import DriftMonitor, fold_novelty
from offmap.monitor.martingale import Jumper
from offmap.monitor.ranks import semi_online_p_values

__all__ = ["Drift", "DriftMonitor", "Jumper", "fold_novelty", "semi_online_p_values"]
