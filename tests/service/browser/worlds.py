"""Worlds to review: digits as images, sentences as texts, points as a table."""

from pathlib import Path

import numpy as np

from offmap.data import OpenSplit, TextEncoder, hold_out_classes, load
from offmap.loop import OpenWorld
from offmap.openset import AnalyticClassifier

STREAM = 500
"""Digits that the world has met; the rest of the split comes later."""
SCRIPT = "<script>document.title = 'taken over'</script> my card was swallowed"
_KNOWN = {
    "balance": ["how much money do I have", "what is my balance", "show my balance", "is there money left"],
    "transfer": ["send money to Anna", "transfer the rent", "pay my friend back", "wire 50 pounds to Tom"],
}
_NEW = ["the machine ate my card", "the machine kept my card", "my card is stuck inside", "it swallowed my card"]
_ENDINGS = ["", " please", " today", " now", " again", " this morning", " right away", " as soon as you can"]


def digits_split() -> OpenSplit:
    """Digits of which 0 to 6 are known."""
    digits = load("digits")
    assert digits.y is not None
    return hold_out_classes(digits.X, digits.y, known=range(7), test_size=0.4, seed=0)


def digits_world(path: Path) -> Path:
    """A world that knows the digits 0 to 6 and has met all ten."""
    split = digits_split()
    classifier = AnalyticClassifier(width=500, calibration=0.3, random_state=0)
    with OpenWorld.create(path, classifier=classifier, alpha=0.05) as world:
        world.teach(split.X_train, split.y_train)
        world.observe(split.X_test[:STREAM], ids=range(STREAM))
    return path


def text_world(path: Path) -> Path:
    """A world of sentences, some of which hold markup."""
    known = [(text + end, label) for label, texts in _KNOWN.items() for text in texts for end in _ENDINGS]
    new = [text + end for text in _NEW for end in _ENDINGS[:5]]
    classifier = AnalyticClassifier(width=200, calibration=0.4, encoder=TextEncoder(), random_state=0)
    with OpenWorld.create(path, classifier=classifier, alpha=0.1) as world:
        world.teach([text for text, _ in known], [label for _, label in known])
        world.observe([*new, *(SCRIPT + end for end in _ENDINGS)])
    return path


def table_world(path: Path) -> Path:
    """A world of feature rows with ten columns, two of whose five classes are unknown."""
    rng = np.random.default_rng(0)
    centres = 8 * rng.normal(size=(5, 10))
    known, new = rng.integers(0, 3, 240), rng.integers(3, 5, 60)
    classifier = AnalyticClassifier(width=100, calibration=0.3, random_state=0)
    with OpenWorld.create(path, classifier=classifier, alpha=0.05) as world:
        world.teach(centres[known] + rng.normal(size=(240, 10)), known)
        world.observe(centres[new] + rng.normal(size=(60, 10)))
    return path
