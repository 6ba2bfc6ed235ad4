"""What a model file says of promises, checked before anybody asks the model: a file may say anything."""

from typing import Any

import numpy as np

from offmap.calibration.mondrian import ClassPromise
from offmap.calibration.promise import Promise
from offmap.labels import check_classes


def check_promises(model: Any) -> None:
    """Raises a ``ValueError`` unless the promises, and the models of the folds, are ones that a fit leaves."""
    if not isinstance(model.promise_, Promise):
        raise ValueError("promise_ must be a Promise")
    members = getattr(model, "members_", None)
    if members is not None:
        _check_members(model, members)
    by_class = getattr(model, "class_promise_", None)
    if by_class is not None and not _is_by_class(by_class, model):
        raise ValueError("class_promise_ must be a ClassPromise of the known classes")


def _check_members(model: Any, members: Any) -> None:
    whole = isinstance(members, tuple) and members and all(type(member) is type(model) for member in members)
    if not whole or any(hasattr(member, "members_") for member in members):
        raise ValueError(f"members_ must be the {type(model).__name__}s of the folds")
    for name in ("input_shape_", "n_features_in_"):
        if getattr(model, name, None) != getattr(members[0], name, None):
            raise ValueError(f"{name} must be that of members_")
    if hasattr(model, "classes_"):
        check_classes(model.classes_, model.unknown_label_)
        if not all(np.array_equal(member.classes_, model.classes_) for member in members):
            raise ValueError("members_ must know the classes of the whole")


def _is_by_class(promise: Any, model: Any) -> bool:
    return isinstance(promise, ClassPromise) and promise.class_count_ == len(model.classes_)
