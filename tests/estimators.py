"""Every public estimator, found through the families' ``__all__``, with settings small enough for tests."""

from typing import Any

from offmap.base import Detector, OpenSetClassifier
from offmap.catalog import methods
from offmap.collaborative.base import EntityDetector
from offmap.parameters import hints

# Enough training for scikit-learn's checks, which ask that easy blobs are told apart.
SMALL: dict[str, Any] = {"epochs": 25, "batch_size": 16, "random_state": 0}
# As little training as there can be, for what holds of any model.
BRIEF: dict[str, Any] = {
    "epochs": 2,
    "steps": 20,
    "adapter_epochs": 1,
    "hidden": (8,),
    "n_layers": 1,
    "n_estimators": 5,
    "embedding_size": 8,
    "calibration": 0.2,
    "random_state": 0,
}


def small(cls: type, **parameters: Any) -> Any:
    """An unfitted estimator that trains in a moment."""
    return _with(cls, SMALL | parameters)


def brief(cls: type, **parameters: Any) -> Any:
    """An unfitted estimator that hardly trains at all."""
    return _with(cls, BRIEF | parameters)


def _with(cls: type, parameters: dict[str, Any]) -> Any:
    return cls(**{name: value for name, value in parameters.items() if name in hints(cls)})


PUBLIC = [method.cls for method in methods()]
DETECTORS = [cls for cls in PUBLIC if issubclass(cls, Detector)]
CLASSIFIERS = [cls for cls in PUBLIC if issubclass(cls, OpenSetClassifier)]
# Those that are asked about rows alone; the others are asked about a row and an entity.
CLASSES = [*CLASSIFIERS, *DETECTORS]
ENTITY_DETECTORS = [cls for cls in PUBLIC if issubclass(cls, EntityDetector)]
