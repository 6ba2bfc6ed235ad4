"""Worlds to review: digits as images, sentences as texts, points as a table."""

from pathlib import Path

import numpy as np

from offmap.data import TextEncoder, hold_out_classes, load
from offmap.loop import OpenWorld
from offmap.openset import AnalyticClassifier

SCRIPT = "<script>document.title = 'taken over'</script> my card was swallowed"
_KNOWN = {
    "balance": ["how much money do I have", "what is my balance", "show the balance of my account", "is there money left"],
    "transfer": ["send money to Anna", "make a transfer to my landlord", "pay my friend back", "wire 50 pounds to Tom"],
}
_NEW = ["the machine ate my card", "the cash machine kept my card", "my card is stuck in the machine", "it swallowed my card"]
_ENDINGS = ["", " please", " today", " now", " again", " this morning", " right away", " as soon as you can"]


def digits_world(path: Path, *, stream: int = 400) -> tuple[Path, dict[int, int]]:
    """A world that knows the digits 0 to 6 and has met all ten; the truth of each row by its id."""
    digits = load("digits")
    split = hold_out_classes(digits.X, digits.y, known=range(7), test_size=0.4, seed=0)
    classifier = AnalyticClassifier(width=500, calibration=0.3, random_state=0)
    with OpenWorld.create(path, classifier=classifier, alpha=0.05) as world:
        world.teach(split.X_train, split.y_train)
        world.observe(split.X_test[:stream], ids=range(stream))
        world.groups()
    return path, {row: int(split.y_test[row]) for row in range(len(split.y_test))}


def later_digits(start: int, count: int) -> np.ndarray:
    """More rows of the same stream."""
    digits = load("digits")
    split = hold_out_classes(digits.X, digits.y, known=range(7), test_size=0.4, seed=0)
    return split.X_test[start : start + count]


def text_world(path: Path) -> Path:
    """A world of sentences whose unknown ones hold markup."""
    known = [(text + end, label) for label, texts in _KNOWN.items() for text in texts for end in _ENDINGS]
    new = [text + end for text in _NEW for end in _ENDINGS[:5]]
    classifier = AnalyticClassifier(width=200, calibration=0.4, encoder=TextEncoder(), random_state=0)
    with OpenWorld.create(path, classifier=classifier, alpha=0.1) as world:
        world.teach([text for text, _ in known], [label for _, label in known])
        world.observe([*new, *(SCRIPT + end for end in _ENDINGS)])
    return path


def table_world(path: Path) -> Path:
    """A world of feature rows with ten columns."""
    rng = np.random.default_rng(0)
    centres = 8 * rng.normal(size=(5, 10))
    known, new = rng.integers(0, 3, 240), rng.integers(3, 5, 60)
    classifier = AnalyticClassifier(width=100, calibration=0.3, random_state=0)
    with OpenWorld.create(path, classifier=classifier, alpha=0.05) as world:
        world.teach(centres[known] + rng.normal(size=(240, 10)), known)
        world.observe(centres[new] + rng.normal(size=(60, 10)))
    return path
