"""Small worlds for tests: blobs in the plane, of which some are known."""

import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.loop import OpenWorld
from offmap.openset import AnalyticClassifier

CENTRES = 9 * np.array([[0, 0], [1, 0], [0, 1], [1, 1], [-1, 1], [-1, 0]])


def blobs(labels: list[int], rows: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows around the centres of some classes, in random order."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(labels, rows))
    return CENTRES[y] + rng.normal(size=(len(y), 2)), y


def classifier(**parameters: Any) -> AnalyticClassifier:
    return AnalyticClassifier(**{"width": 40, "calibration": 0.4, "alpha": 0.1, "random_state": 0} | parameters)


def taught(path: Path, **settings: Any) -> OpenWorld:
    """A world that knows the classes 0, 1 and 2."""
    world = OpenWorld.create(path, classifier=classifier(), min_group=4, **settings)
    world.teach(*blobs([0, 1, 2], 30))
    return world


def fingerprint(world: OpenWorld) -> str:
    """A digest of the state but for the digests of model files, whose metadata come in no fixed order."""
    return hashlib.sha256(re.sub(rb'"digest": "[0-9a-f]{64}"', b"", world.state.to_bytes())).hexdigest()
