"""From data to a model, from a model to scores: what the commands do, as functions."""

import os
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from offmap import catalog, parameters
from offmap.base import Detector, OpenSetClassifier
from offmap.cells import inert
from offmap.collaborative.base import EntityDetector
from offmap.data import Data, TextEncoder
from offmap.data.images import IMAGE_SUFFIXES
from offmap.data.readers import path_of
from offmap.errors import WorkFailed, reason_of
from offmap.files import replacing
from offmap.metrics import open_set_summary
from offmap.report import Sample, Section, section_of
from offmap.verdict import Verdict

TABLE_SUFFIXES = (".parquet", ".csv")
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


def fit_model(estimator: Estimator, data: Data) -> Estimator:
    """Fits a detector to rows, a classifier to rows and labels, an entity model to rows and entities.

    Texts go through a sentence encoder first.

    Example:
        >>> from offmap.data import load
        >>> fit_model(configure("vae", ["epochs=2"]), load("breast-cancer"))
        VAEDetector(epochs=2, random_state=0)
    """
    if data.kind == "text" and estimator.encoder is None:
        estimator.set_params(encoder=TextEncoder(device=estimator.device))
    if isinstance(estimator, Detector):
        return estimator.fit(data.rows)
    if isinstance(estimator, EntityDetector):
        return estimator.fit(data.rows, _entities_of(estimator, data))
    if data.y is None:
        raise ValueError(
            f"{type(estimator).__name__} learns classes, but {data.name} has no labels; a table needs --label COLUMN, "
            "an .npz file the key y, a folder of images one sub-folder per class"
        )
    return estimator.fit(data.rows, data.y)


def _entities_of(estimator: EntityDetector, data: Data) -> NDArray[Any]:
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
    return f"false-alarm rate of at most {model.promised_rate:.1%} promised; this model: {rate}"


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


def assess(model: Estimator, data: Data) -> Verdict:
    """Assesses each row once: what all commands read."""
    _require_readable(model, data)
    rows = _rows_for(model, data)
    return model.assess(rows, _entities_of(model, data)) if isinstance(model, EntityDetector) else model.assess(rows)


def score_rows(model: Estimator, data: Data) -> pd.DataFrame:
    """Scores each row: novelty, p-value, whether it is flagged; from a classifier also label and closest class.

    Example:
        >>> from offmap.data import load
        >>> digits = load("digits")
        >>> list(score_rows(fit_model(configure("msp", ["epochs=2"]), digits), digits))
        ['row', 'novelty', 'p_value', 'novel', 'label', 'closest']
    """
    frame = assess(model, data).to_frame()
    frame.insert(0, "row", np.arange(len(data)))
    return frame


def evaluate_model(model: Estimator, normal: Data, novel: Data) -> Section:
    """Measures how well normal and novel rows are told apart; with labels, how well a classifier labels them too."""
    normal_verdict, novel_verdict = assess(model, normal), assess(model, novel)
    labelled = {} if normal.y is None else _labelled_rightly(model, normal, normal_verdict, novel_verdict)
    samples = (
        Sample(verdict, _rows_for(model, data), data.y)
        for verdict, data in ((normal_verdict, normal), (novel_verdict, novel))
    )
    return section_of(model, *samples, name=name_of(model), metrics=labelled)


def _rows_for(model: Estimator, data: Data) -> Any:
    """Rows as the model knows them; the names of features are compared where both sides have them."""
    known = getattr(model, "feature_names_in_", None)
    if known is None:
        return data.X
    if data.feature_names:
        return data.rows
    if data.X.ndim != 2 or data.X.shape[1] != len(known):
        width = " × ".join(map(str, data.X.shape[1:]))
        raise ValueError(f"X has {width} features, but {type(model).__name__} is expecting {len(known)}")
    return pd.DataFrame(data.X, columns=known)


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Writes a table as .parquet or .csv, by the name of the file."""
    require_writable(path, TABLE_SUFFIXES)
    with replacing(path) as fresh:
        if path.suffix == ".csv":
            inert(frame).to_csv(fresh, index=False)
        else:
            frame.to_parquet(fresh, index=False)


def require_writable(path: Path, suffixes: Collection[str] = (), inputs: Sequence[str] = ()) -> None:
    """Checks before the work that its result can be written.

    Args:
        path: Where a file is to be written.
        suffixes: What its name may end in; anything, if there are none.
        inputs: What the work reads, as ``open_data`` takes it; its result must not replace that.
    """
    for given in map(path_of, inputs):
        if given is not None and _is_read(path, given):
            raise ValueError(f"cannot write {path}: it is read as well; name another file")
    if suffixes and path.suffix not in suffixes:
        raise ValueError(f"a file to write must end in {' or '.join(suffixes)}; got {path}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} does not exist")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"cannot write {path}: the folder {path.parent} is not yours to write to")


def _is_read(path: Path, given: Path) -> bool:
    """Whether ``path`` is the input ``given``, or a picture or an existing file in the folder ``given``."""
    if given.is_dir():
        inside = path.resolve().is_relative_to(given.resolve())
        return inside and (path.exists() or path.suffix.lower() in IMAGE_SUFFIXES)
    return path.exists() and path.samefile(given)


def name_of(model: Estimator) -> str:
    """What the command line calls the method of a model."""
    return next(method.name for method in catalog.methods() if type(model) is method.cls)


def _labelled_rightly(model: Estimator, normal: Data, known: Verdict, unknown: Verdict) -> dict[str, float]:
    """How often a classifier labels the rows right: known ones by their class, novel ones as unknown."""
    if not isinstance(model, OpenSetClassifier) or normal.y is None or known.label is None or unknown.label is None:
        return {}
    if strange := sorted(set(normal.y.tolist()) - set(model.classes_.tolist()), key=str):
        raise ValueError(f"the normal rows of {normal.name} have the label {strange[0]!r}, which was never taught")
    truth = [*normal.y.tolist(), *[model.unknown_label_] * len(unknown)]
    answers = [*known.label.tolist(), *unknown.label.tolist()]
    found = open_set_summary(truth, answers, model.classes_, model.unknown_label_)
    closed = float(np.mean(known.closest == normal.y))
    return {"known_accuracy": closed, "open_accuracy": found["accuracy"], "open_f1": found["f1"]}


def _require_readable(model: Estimator, data: Data) -> None:
    texts, wanted = data.kind == "text", model.encoder is not None
    if texts and not wanted:
        raise ValueError(f"{data.name} holds texts, but the model was fitted on numbers")
    if wanted and not texts:
        raise ValueError(
            f"{data.name} holds {data.kind}, but the model was fitted on texts; name their column with --text"
        )


def _require_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"device must be one that torch can use here; got {device!r}: {reason}") from error
