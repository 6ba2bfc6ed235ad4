"""Problems with a known answer, and every public detector in a size for tests."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import offmap.collaborative
from offmap.parameters import hints

SMALL: dict[str, Any] = {
    "epochs": 3,
    "hidden": (8,),
    "n_estimators": 5,
    "n_layers": 2,
    "embedding_size": 8,
    "calibration": 0.2,
    "random_state": 0,
}
CLASSES = [getattr(offmap.collaborative, name) for name in offmap.collaborative.__all__]


def small(cls: Any, **parameters: Any) -> Any:
    """An unfitted detector that trains in a moment."""
    return cls(**{name: value for name, value in SMALL.items() if name in hints(cls)} | parameters)


def kinds() -> list[Any]:
    """Every public detector, and other settings of those that work in more than one way."""
    from offmap.collaborative import ClosedFormDetector, EntityFlowDetector, RatioDetector

    others = [
        small(RatioDetector, head="concat"),
        small(RatioDetector, head="two_tower"),
        small(RatioDetector, head="concat", embedding="learned", seed_entities=3),
        small(RatioDetector, head="concat", embedding="pseudo", embedding_size=3),
        small(ClosedFormDetector, features="fourier"),
        small(ClosedFormDetector, features="pca"),
        small(EntityFlowDetector, condition="affine"),
        small(EntityFlowDetector, condition="prior"),
    ]
    return [small(cls) for cls in CLASSES] + others


def ring(entities: int = 6, each: int = 30, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows around one point per entity, the points on a circle in the order of the ids."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(entities), each)
    angle = 2 * np.pi * ids / entities
    return 3 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.normal(size=(len(ids), 2)), ids


def ring_log_ratio(X: NDArray[np.float64], entity: int, entities: int) -> NDArray[np.float64]:
    """The true log ratio of an entity of ``ring`` to the population."""
    angles = 2 * np.pi * np.arange(entities) / entities
    centres = 3 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    logs = -0.5 * ((X[:, None] - centres) ** 2).sum(axis=2)
    population = np.logaddexp.reduce(logs, axis=1) - np.log(entities)
    return np.asarray(logs[:, entity] - population)
