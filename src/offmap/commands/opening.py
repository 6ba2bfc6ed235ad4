"""Opens the data of a command for the model that is to read them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offmap.data import Data
    from offmap.data.roles import Roles
    from offmap.workflow import Estimator

_SUFFIXES = (".npz", ".npy", ".csv", ".tsv", ".gz", ".parquet", ".pq", ".jsonl", ".ndjson", ".safetensors")


def require_present(model: Path | None, *specs: str) -> None:
    """Stops a command whose files are not there before it imports anything heavy."""
    if model is not None and not model.is_file():
        raise FileNotFoundError(f"there is no file {model}")
    for spec in specs:
        name = spec if spec.endswith(_SUFFIXES) else spec.rpartition(":")[0] or spec
        if name.endswith(_SUFFIXES) and not Path(name).exists() and not Path(spec).exists():
            raise FileNotFoundError(f"{spec!r} is neither a file or folder nor a data set")


def roles_of(
    text: str | None = None,
    label: str | None = None,
    entity: str | None = None,
    only: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    ids: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
) -> "Roles":
    """The roles that the options of a command state."""
    from offmap.data.roles import Roles

    pairs = [(name, kind) for name, _, kind in (each.rpartition("=") for each in kinds or ())]
    if any(not name for name, _ in pairs):
        raise ValueError("a kind is COLUMN=KIND, as zip=category")
    groups = {"only": only, "drop": drop, "id": ids, "keep": keep}
    given = {name: tuple(names or ()) for name, names in groups.items()}
    return Roles(text=text, label=label, entity=entity, kinds=tuple(pairs), **given)


def require_plain(roles: "Roles", hold_out: Sequence[str] | None) -> None:
    """Raises a ``ValueError`` if options give columns a role, which all rows would have to be read for."""
    stated = [f"--{name}" for name, value in roles.to_dict().items() if value not in (None, (), [], {})]
    if stated or hold_out:
        option = stated[0] if stated else "--hold-out"
        raise ValueError(f"{option} must be left out with --stream, which reads all columns as features")


def open_rows(
    estimator: "Estimator", spec: str, roles: "Roles", *, optional: Sequence[str] = (), scoring: bool = False
) -> "Data":
    """Rows with their labels or entities, as the model learns them.

    Args:
        estimator: The method, or the fitted model.
        spec: The data.
        roles: What the options state.
        optional: Roles whose columns a table may lack.
        scoring: Whether the roles that the fitted model remembers count where the options state none.
    """
    from offmap.data import open_data
    from offmap.data.readers import is_table
    from offmap.workflow import scoring_roles

    require_entity_role(estimator, roles)
    if not scoring:
        return open_data(spec, roles=roles, optional=optional)
    if not is_table(spec):
        return open_data(spec, roles=roles)
    remembered, lacking = scoring_roles(estimator, roles)
    return open_data(spec, roles=remembered, optional=[*lacking, *optional])


def require_entity_role(estimator: "Estimator", roles: "Roles") -> None:
    """Refuses a column of entities for a method that knows none."""
    from offmap.collaborative.base import EntityDetector

    if roles.entity is not None and not isinstance(estimator, EntityDetector):
        raise ValueError(f"--entity must be left out: {type(estimator).__name__} knows no entities")
