"""Open-set classifiers: they name the known class of a row, or reject the row as unknown."""

from offmap.openset.adb import ADBClassifier
from offmap.openset.analytic import AnalyticClassifier
from offmap.openset.ans import ANSClassifier
from offmap.openset.deepunk import DeepUnkClassifier
from offmap.openset.doc import DOCClassifier
from offmap.openset.lof import LOFClassifier
from offmap.openset.msp import MSPClassifier
from offmap.openset.openmax import OpenMaxClassifier
from offmap.openset.selfsup import SelfSupClassifier

__all__ = [
    "ADBClassifier",
    "ANSClassifier",
    "AnalyticClassifier",
    "DOCClassifier",
    "DeepUnkClassifier",
    "LOFClassifier",
    "MSPClassifier",
    "OpenMaxClassifier",
    "SelfSupClassifier",
]
