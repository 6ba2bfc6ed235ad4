"""Tables with named columns: matched by name, shown by name, and written with the exported model."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import offmap
from offmap.loop import OpenWorld
from tests.loop.worlds import blobs, classifier

NAMES = ["height", "weight"]


def frame(labels: list[int], rows: int, seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(blobs(labels, rows, seed)[0], columns=NAMES)


@pytest.fixture
def world(tmp_path: Path) -> OpenWorld:
    world = OpenWorld.create(tmp_path / "w", classifier=classifier(), min_group=4)
    world.teach(frame([0, 1, 2], 30), blobs([0, 1, 2], 30)[1])
    return world


def test_columns_are_matched_by_name_and_others_are_ignored(world: OpenWorld) -> None:
    stream = frame([0, 3], 10, seed=1)
    swapped = stream.assign(note="text")[["note", "weight", "height"]]
    plain = world.observe(stream.to_numpy(), ids=range(1000, 1020))
    assert world.observe(swapped, ids=range(2000, 2020)).novelty.tolist() == plain.novelty.tolist()
    assert world.rows([2000]).tolist() == world.rows([1000]).tolist()


def test_a_lesson_after_the_first_is_matched_too(world: OpenWorld) -> None:
    X, y = frame([0, 1, 2, 3], 20, seed=3), blobs([0, 1, 2, 3], 20, seed=3)[1]
    world.teach(X[NAMES[::-1]], y)
    assert np.mean(world.classifier.predict_closed(X.to_numpy()) == y) > 0.9
    assert world.state.columns == NAMES


def test_missing_columns_and_columns_of_text_are_named(world: OpenWorld) -> None:
    before = world.state.to_bytes()
    with pytest.raises(ValueError, match="X lacks the columns 'weight', which were taught"):
        world.observe(frame([0], 5)[["height"]])
    with pytest.raises(ValueError, match="other things than numbers in the columns 'weight'; encode them"):
        world.observe(frame([0], 5).assign(weight="heavy"))
    assert world.state.to_bytes() == before


def test_groups_tell_the_names_of_features(world: OpenWorld) -> None:
    world.observe(frame([3], 15, seed=1))
    assert {word.rpartition(" ")[0] for word in world.groups()[0].telling} == set(NAMES)


def test_an_exported_model_knows_its_columns(world: OpenWorld, tmp_path: Path) -> None:
    assert world.export(tmp_path / "model.safetensors") == 1
    stream = frame([0, 3], 10, seed=1)
    model = offmap.load(tmp_path / "model.safetensors")
    assert model.feature_names_in_.tolist() == NAMES
    assert model.novelty(stream).tolist() == world.classifier.novelty(stream.to_numpy()).tolist()
    # The model in use is asked about arrays and must not expect names.
    assert not hasattr(world.classifier, "feature_names_in_")


def test_names_survive_a_restart_and_an_undo_takes_them_back(world: OpenWorld, tmp_path: Path) -> None:
    world.close()
    with OpenWorld.open(tmp_path / "w") as again:
        assert again.state.columns == NAMES
        again.undo()
        assert again.state.columns is None
