"""Which known class is it, or none? Classifiers that reject what they were never taught."""

from offmap.openset.ans import ANSClassifier
from offmap.openset.msp import MSPClassifier

__all__ = ["ANSClassifier", "MSPClassifier"]
