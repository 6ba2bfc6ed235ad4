"""What a service asks of a world beyond the acts of a person: versions to score with, and whether an act is stale."""

from collections.abc import Collection
from typing import Any

from numpy.typing import NDArray

from offmap.loop.acts import require_current
from offmap.loop.lessons import with_names
from offmap.loop.world import OpenWorld
from offmap.openset.incremental import IncrementalClassifier


def require_unchanged(world: OpenWorld, expected: int | None, groups: Collection[int] = ()) -> None:
    """Raises a ``StaleActError`` if one of the groups was changed since a revision; without groups, if anything was.

    For acts of several steps, whose first step changes what the others are about; each single act takes ``expected``
    itself.
    """
    world.refresh()
    history = world._ledger.history
    subjects = [("group", group) for group in groups]
    require_current(history.acts, history.state, expected=expected, revision=history.revision, subjects=subjects)


def model_in_use(world: OpenWorld) -> IncrementalClassifier:
    """The version of the model in use, with the names of its features."""
    return with_names(world._ledger, world.classifier)


def model_of(world: OpenWorld, version: int) -> IncrementalClassifier:
    """A version of the model, in use or not, with the names of its features."""
    return with_names(world._ledger, world._ledger.home.read_model(world.state.versions[version]))


def taught_rows(world: OpenWorld, limit: int) -> NDArray[Any]:
    """Rows that taught the known classes, the first ``limit`` of them."""
    return world._ledger.memory.rows(list(world.state.taught)[:limit])
