"""Names of classes in lessons over HTTP are those that a person may give."""

from pathlib import Path
from typing import Any

import pytest

from offmap.loop import OpenWorld
from tests.loop.worlds import blobs, classifier
from tests.service.conftest import serving

NAMES = ["setosa", "virginica", "versicolor"]


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    X, y = blobs([0, 1, 2], 30)
    with OpenWorld.create(tmp_path / "flowers", classifier=classifier(), min_group=4) as world:
        world.teach(X, [NAMES[label] for label in y])
    return tmp_path / "flowers"


def lesson(label: Any) -> dict[str, Any]:
    return {"rows": blobs([3], 8, seed=1)[0].tolist(), "labels": [label] * 8}


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("", "label is empty"),
        ("   ", "label is empty"),
        ("SETOSA", "differs from the class 'setosa' only in case"),
        ("x" * 100_000, "has 100,000 characters; a name has at most 200"),
        (True, "labels must be integers or texts; got true"),
    ],
)
def test_a_lesson_names_no_class_that_a_person_could_not(flowers: Path, label: Any, words: str) -> None:
    with serving(worlds={"flowers": flowers}) as client:
        answer = client.post("/v1/worlds/flowers/teach", json=lesson(label))
        assert answer.status_code == 422
        assert words in answer.json()["error"]
        assert len(answer.json()["error"]) < 300
        assert client.get("/v1/worlds/flowers").json()["version"] == 1


def test_spaces_around_a_known_class_make_no_other_class(flowers: Path) -> None:
    with serving(worlds={"flowers": flowers}) as client:
        assert client.post("/v1/worlds/flowers/teach", json=lesson(" setosa ")).status_code == 200
        assert client.get("/v1/worlds/flowers").json()["classes"] == 3


@pytest.mark.parametrize("label", ["", "x" * 201])
def test_the_first_lesson_is_checked_too(tmp_path: Path, label: str) -> None:
    OpenWorld.create(tmp_path / "new", classifier=classifier()).close()
    X, y = blobs([0, 1], 30)
    named = {"rows": X.tolist(), "labels": [("a", label)[number] for number in y]}
    with serving(worlds={"new": tmp_path / "new"}) as client:
        answer = client.post("/v1/worlds/new/teach", json=named)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("label ")


def test_flags_among_integers_are_no_classes(world: Path) -> None:
    X, y = blobs([1, 3], 8, seed=1)
    mixed = {"rows": X.tolist(), "labels": [True if label == 1 else int(label) for label in y]}
    with serving(worlds={"blobs": world}) as client:
        answer = client.post("/v1/worlds/blobs/teach", json=mixed)
    assert (answer.status_code, answer.json()["error"]) == (422, "labels must be integers or texts; got true")
