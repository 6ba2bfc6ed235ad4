"""Opens the data of a command for the model that is to read them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offmap.data import Data
    from offmap.workflow import Estimator


def open_rows(estimator: "Estimator", spec: str, text: str | None, label: str | None, entity: str | None) -> "Data":
    """Rows with their labels or entities, as the model learns them."""
    from offmap.collaborative.base import EntityDetector
    from offmap.data import open_data

    if label is not None and entity is not None:
        raise ValueError("--label and --entity must not both be given: a model learns classes or entities")
    opened = open_data(spec, text=text, label=label if entity is None else entity)
    if entity is not None and not isinstance(estimator, EntityDetector):
        raise ValueError(f"--entity must be left out: {type(estimator).__name__} knows no entities")
    return opened


def open_novel(estimator: "Estimator", spec: str, text: str | None, label: str | None, entity: str | None) -> "Data":
    """Rows of no known class, which need no column of labels."""
    from offmap.data.tables import NoSuchColumn

    try:
        return open_rows(estimator, spec, text, label, entity)
    except NoSuchColumn:
        if label is None:
            raise
        return open_rows(estimator, spec, text, None, None)
