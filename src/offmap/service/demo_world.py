"""A world to look at: the digits 0 to 6 are known, and the stream brings 7, 8 and 9."""

from pathlib import Path

from offmap.data import hold_out_classes, load
from offmap.loop import OpenWorld
from offmap.openset import AnalyticClassifier


def make_demo_world(folder: Path) -> None:
    """Makes a world of handwritten digits in which groups of unknown ones wait for a name.

    Args:
        folder: The folder; it must not hold a world yet.
    """
    digits = load("digits")
    assert digits.y is not None
    split = hold_out_classes(digits.X, digits.y, known=range(7), test_size=0.4, seed=0)
    classifier = AnalyticClassifier(calibration=0.3, random_state=0)
    with OpenWorld.create(folder, classifier=classifier) as world:
        world.teach(split.X_train, split.y_train)
        world.observe(split.X_test)
        world.groups()
