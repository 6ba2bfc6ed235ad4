"""From data to a fitted model, and what is known of it."""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from offmap import catalog, parameters
from offmap.base import Detector, OpenSetClassifier
from offmap.calibration.statement import at_most_or_about
from offmap.collaborative.base import EntityDetector
from offmap.data import Data, TableEncoder, TextEncoder
from offmap.data.roles import Roles
from offmap.data.table import require_sound
from offmap.errors import WorkFailed, reason_of
from offmap.estimator import encoder_of

Estimator = Detector | OpenSetClassifier | EntityDetector


def configure(method: str, settings: Sequence[str] = (), seed: int = 0) -> Estimator:
    """Makes the method of that name with ``name=value`` settings, and checks them before any work.

    Example:
        >>> configure("vae", ["epochs=2", "hidden=64,32"], seed=1)
        VAEDetector(epochs=2, hidden=(64, 32), random_state=1)
    """
    cls = catalog.method(method).cls
    chosen = dict(parameters.parse(cls, setting) for setting in settings)
    if "random_state" in chosen:
        raise ValueError("random_state is the seed: give it as --seed")
    estimator: Estimator = cls(random_state=seed, **chosen)
    _require_device(estimator.device)
    return estimator


def configure_all(methods: Sequence[str], settings: Sequence[str] = ()) -> list[Estimator]:
    """Makes several methods; each gets the settings that it has a parameter for, and every setting must serve one."""
    known = {name: parameters.hints(catalog.method(name).cls) for name in methods}
    for setting in settings:
        if not any(setting.partition("=")[0] in names for names in known.values()):
            raise ValueError(f"no method has the parameter of the setting {setting!r}")
    fitting = {name: [each for each in settings if each.partition("=")[0] in known[name]] for name in known}
    return [configure(name, own) for name, own in fitting.items()]


def fit_model(estimator: Estimator, data: Data, roles: Roles | None = None) -> Estimator:
    """Fits a detector to rows, a classifier to rows and labels, an entity model to rows and entities.

    Texts go through a sentence encoder first, and tables through a ``TableEncoder``. The model remembers the roles of
    the columns as ``roles_``, so that scoring needs none of them again.

    Args:
        estimator: The method.
        data: The rows.
        roles: What the columns of the table were for.

    Example:
        >>> from offmap.data import load
        >>> fit_model(configure("vae", ["epochs=2"]), load("breast-cancer"))
        VAEDetector(epochs=2, random_state=0)
    """
    roles = roles or Roles()
    _give_encoder(estimator, data, roles)
    model = _fitted(estimator, data)
    if isinstance(encoder := encoder_of(model), TableEncoder) and not (roles.id or roles.keep):
        roles = replace(roles, id=tuple(encoder.identifiers_))
    if roles.targeted:
        model.roles_ = roles.to_dict()
    return model


def fit_stream(estimator: Estimator, path: Path) -> Estimator:
    """Fits a detector to the rows of a Parquet file or a folder of them, which are read while it trains."""
    if not isinstance(estimator, Detector):
        raise ValueError(f"--stream is for detectors of rows; {type(estimator).__name__} is none")
    return estimator.fit(path)


def _give_encoder(estimator: Estimator, data: Data, roles: Roles) -> None:
    if estimator.encoder is not None:
        return
    if data.kind == "text":
        estimator.set_params(encoder=TextEncoder(device=estimator.device))
    elif data.kind == "table":
        assert data.frame is not None
        require_sound(data.frame, dict(roles.kinds), data.name)
        estimator.set_params(encoder=TableEncoder(kinds=dict(roles.kinds) or None))


def _fitted(estimator: Estimator, data: Data) -> Estimator:
    if isinstance(estimator, Detector):
        return estimator.fit(data.rows)
    if isinstance(estimator, EntityDetector):
        return estimator.fit(data.rows, entities_of(estimator, data))
    if data.y is None:
        raise ValueError(
            f"{type(estimator).__name__} learns classes, but {data.name} has no labels; a table needs --label COLUMN, "
            "an .npz file the key y, a folder of images one sub-folder per class"
        )
    return estimator.fit(data.rows, data.y)


def entities_of(estimator: EntityDetector, data: Data) -> NDArray[Any]:
    """The entity of each row, which takes the place of a label."""
    if data.y is None:
        raise ValueError(
            f"{type(estimator).__name__} asks what is unusual for an entity, but {data.name} names none; a table needs "
            "--entity COLUMN, an .npz file the key y, a folder of images one sub-folder per entity"
        )
    return data.y


def summary_of(model: Estimator) -> dict[str, Any]:
    """What is known of a fitted model before it scores anything."""
    rate = model.false_alarm_rate
    return {
        "method": name_of(model),
        **({"classes": len(model.classes_)} if isinstance(model, OpenSetClassifier) else {}),
        **({"entities": len(model.entity_ids_)} if isinstance(model, EntityDetector) else {}),
        "threshold": float(model.threshold_),
        "promised_rate": model.promised_rate,
        "false_alarm_rate": None if rate is None else rate.rate,
        "false_alarm_interval": None if rate is None else [rate.low, rate.high],
        "calibration_rows": len(model.calibration_novelty_),
        "last_epoch": {term: values[-1] for term, values in model.history_.items()},
    }


def promise_of(model: Estimator) -> str:
    """The promise of a fitted model in a sentence."""
    rate = model.false_alarm_rate
    if rate is None:
        return "no false-alarm rate is promised or known: no rows were held out (calibration=0)"
    if model.promised_rate is None:
        return f"no false-alarm rate is promised by the method's own rule; measured {rate}"
    return f"false-alarm rate of {at_most_or_about(model)} {model.promised_rate:.1%} promised; this model: {rate}"


def save_model(model: Estimator, path: Path) -> None:
    """Saves a fitted model. If the disk is full, it is kept in the folder of temporary files, and the error says where.

    Raises:
        WorkFailed: It could not be written to ``path``.
    """
    try:
        model.save(path)
    except OSError as error:
        raise WorkFailed(f"cannot write {path}: {reason_of(error)}; {_kept(model)}") from error


def _kept(model: Estimator) -> str:
    folder = tempfile.mkdtemp(prefix="offmap-")
    try:
        model.save(Path(folder) / "model.safetensors")
    except OSError as error:
        os.rmdir(folder)
        return f"nor could the model be kept in {tempfile.gettempdir()}: {reason_of(error)}"
    return f"the fitted model was kept as {Path(folder) / 'model.safetensors'}"


def load_model(path: str | os.PathLike[str], trusted: Sequence[str] = ()) -> Estimator:
    """Restores a saved model that scores rows; other saved files, such as samplers, are refused."""
    model = catalog.load(path, trusted=trusted)
    if not isinstance(model, Estimator):
        raise ValueError(f"{os.fspath(path)} must hold a detector or a classifier; it holds a {type(model).__name__}")
    return model


def name_of(model: Estimator) -> str:
    """What the command line calls the method of a model."""
    return next(method.name for method in catalog.methods() if type(model) is method.cls)


def _require_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"device must be one that torch can use here; got {device!r}: {reason}") from error
