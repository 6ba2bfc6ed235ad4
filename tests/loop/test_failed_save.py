"""What a save that fails leaves in the folder of a world: every file that the journal speaks of, and no other."""

from pathlib import Path
from typing import Any

import pytest

from offmap.loop import OpenWorld
from offmap.loop.history import History
from tests.loop.worlds import blobs, classifier


def model_files(folder: Path) -> set[str]:
    return {path.name for path in (folder / "models").iterdir()}


def fill_the_disk(world: OpenWorld, full: bool = True) -> None:
    """Lets the journal grow no more, as on a full disk where only the smaller model file still found room."""
    database = world._ledger.journal._database  # type: ignore[attr-defined]
    pages = database.execute("PRAGMA page_count").fetchone()[0] if full else 100_000
    database.execute(f"PRAGMA max_page_count = {pages}")


def test_no_model_file_stays_behind_if_the_journal_cannot_be_written(world: OpenWorld, tmp_path: Path) -> None:
    world.name(world.groups()[0].id, 3)
    before = world.state.to_bytes()
    fill_the_disk(world)
    with pytest.raises(OSError, match="full"):
        world.teach(*blobs([0, 1, 2], 500, seed=5))
    assert model_files(tmp_path / "w") == {"0001.safetensors"}
    assert world.state.to_bytes() == before
    fill_the_disk(world, full=False)
    assert world.learn() == 2
    assert model_files(tmp_path / "w") == {"0001.safetensors", "0002.safetensors"}


def test_no_model_file_stays_behind_if_the_rows_that_wait_cannot_be_assessed(
    world: OpenWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.name(world.groups()[0].id, 3)

    def assess(*given: object) -> Any:
        raise MemoryError

    monkeypatch.setattr(type(world.classifier), "assess", assess)
    with pytest.raises(MemoryError):
        world.learn()
    assert model_files(tmp_path / "w") == {"0001.safetensors"}


def test_a_first_lesson_that_fails_leaves_no_model_file(tmp_path: Path) -> None:
    with OpenWorld.create(tmp_path / "w", classifier=classifier()) as world:
        fill_the_disk(world)
        with pytest.raises(OSError, match="full"):
            world.teach(*blobs([0, 1, 2], 500))
    assert model_files(tmp_path / "w") == set()


def test_a_model_that_the_journal_speaks_of_stays_whatever_fails_afterwards(
    world: OpenWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.name(world.groups()[0].id, 3)

    def add(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupted:
        interrupted.setattr(History, "add", add)
        with pytest.raises(KeyboardInterrupt):
            world.learn()
    assert model_files(tmp_path / "w") == {"0001.safetensors", "0002.safetensors"}
    world.refresh()
    assert world.state.version == 2
    assert 3 in world.classifier.classes_


def test_an_undone_version_keeps_its_file_when_a_later_save_fails(world: OpenWorld, tmp_path: Path) -> None:
    world.name(world.groups()[0].id, 3)
    world.learn()
    world.undo()
    fill_the_disk(world)
    with pytest.raises(OSError, match="full"):
        world.teach(*blobs([0, 1, 2], 500, seed=5))
    fill_the_disk(world, full=False)
    assert world.redo() == "learnt"
    assert 3 in world.classifier.classes_
