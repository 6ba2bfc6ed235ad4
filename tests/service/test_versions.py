"""Versions are loaded, put into use and rolled back while requests are answered."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import offmap
from offmap.service import Limits, Settings, create_app
from offmap.workflow import load_model
from tests.loop.worlds import blobs, taught
from tests.service.conftest import WIDTH, serving

ROWS = {"rows": [[0.5] * WIDTH]}


@pytest.fixture
def versions(files: Path) -> Iterator[TestClient]:
    with serving(models={"m": files / "versions"}, limits=Limits(versions=2)) as client:
        yield client


def test_the_newest_is_used_and_others_can_be(versions: TestClient, files: Path) -> None:
    about = versions.get("/v1/models/m").json()
    assert (about["version"], about["versions"]) == ("10", ["1", "2", "10"])
    novelty = {
        version: offmap.load(files / "versions" / f"{version}.safetensors").novelty(ROWS["rows"]).tolist()
        for version in about["versions"]
    }
    for version in ("1", "2", "10", "1"):
        found = versions.post(f"/v1/models/m/versions/{version}/score", json=ROWS).json()
        assert (found["version"], found["novelty"]) == (version, novelty[version])
    assert versions.post("/v1/models/m/score", json=ROWS).json()["version"] == "10"
    assert versions.post("/v1/models/m/use", json={"version": "2"}).json()["version"] == "2"
    assert versions.post("/v1/models/m/use", json={"version": "1"}).json()["version"] == "1"
    assert versions.post("/v1/models/m/score", json=ROWS).json()["novelty"] == novelty["1"]
    assert versions.post("/v1/models/m/rollback").json()["version"] == "2"
    assert versions.post("/v1/models/m/rollback").json()["version"] == "10"
    assert versions.post("/v1/models/m/rollback").status_code == 409
    assert 'version="10"} 1.0' in versions.get("/metrics").text


def test_a_version_that_cannot_be_loaded_changes_nothing(files: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "1.safetensors").write_bytes((files / "numbers.safetensors").read_bytes())
    with serving(models={"m": folder}) as client:
        (folder / "2.safetensors").write_bytes(b"nonsense")
        refused = client.post("/v1/models/m/use", json={"version": "2"})
        assert refused.status_code == 500
        assert str(tmp_path) not in refused.json()["error"]
        assert client.post("/v1/models/m/use", json={"version": "../2"}).status_code == 404
        assert client.post("/v1/models/m/score", json=ROWS).json()["version"] == "1"
        (folder / "3.safetensors").write_bytes((files / "neighbors.safetensors").read_bytes())
        assert client.post("/v1/models/m/use", json={"version": "3"}).json()["method"] == "nearest-neighbor"


def test_no_request_fails_while_versions_are_swapped(versions: TestClient, files: Path) -> None:
    novelty = {
        version: offmap.load(files / "versions" / f"{version}.safetensors").novelty(ROWS["rows"]).tolist()
        for version in ("1", "2", "10")
    }
    answers: list[Any] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            answers.append(versions.post("/v1/models/m/score", json=ROWS))

    clients = [threading.Thread(target=ask) for _ in range(4)]
    for client in clients:
        client.start()
    for _ in range(5):
        for version in ("1", "2", "10"):
            assert versions.post("/v1/models/m/use", json={"version": version}).status_code == 200
    stop.set()
    for client in clients:
        client.join()
    assert {answer.status_code for answer in answers} == {200}
    # Each answer is of one version alone, and says of which.
    assert all(answer.json()["novelty"] == novelty[answer.json()["version"]] for answer in answers)
    assert len({answer.json()["version"] for answer in answers}) > 1


def test_a_service_that_loads_says_so(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go, done = threading.Event(), threading.Event()

    def slow(*arguments: Any) -> Any:
        assert go.wait(60)
        return load_model(*arguments)

    monkeypatch.setattr("offmap.service.models.load_model", slow)
    settings = Settings(models={"numbers": files / "numbers.safetensors"})
    app = create_app(settings, background=lambda error: done.set())
    with TestClient(app, base_url="http://localhost") as client:
        assert client.get("/v2/health/live").status_code == 200
        for early in (client.get("/v2/health/ready"), client.post("/v1/models/numbers/score", json=ROWS)):
            assert (early.status_code, early.headers["retry-after"]) == (503, "1")
        go.set()
        assert done.wait(60)
        assert client.get("/v2/health/ready").status_code == 200
        assert client.post("/v1/models/numbers/score", json=ROWS).status_code == 200


def test_rows_are_observed_by_the_version_that_is_named(world: Path) -> None:
    X, y = blobs([0, 1, 2], 20, seed=3)
    with serving(worlds={"blobs": world}) as client:
        handle, go = client.app.state.worlds.get("blobs"), threading.Event()  # type: ignore[attr-defined]
        lesson = threading.Thread(target=handle.call, args=[lambda opened: (go.wait(5), opened.teach(X, y))])
        found: list[Any] = []
        rows = {"rows": X[:1].tolist()}
        client_thread = threading.Thread(
            target=lambda: found.append(client.post("/v1/worlds/blobs/observe", json=rows).json())
        )
        lesson.start()
        client_thread.start()
        while not handle._waiting:
            time.sleep(0.01)
        go.set()
        lesson.join()
        client_thread.join()
        [answer] = found
        assert answer["version"] == "2"
        assert answer["novelty"] == client.post("/v1/models/blobs/score", json=rows).json()["novelty"]


def test_a_withdrawn_model_scores_no_more(tmp_path: Path) -> None:
    taught(tmp_path / "blobs.world").close()
    rows = {"rows": blobs([3], 4, seed=9)[0].tolist()}
    with serving(worlds={"blobs": tmp_path / "blobs.world"}) as client:
        assert client.post("/v1/models/blobs/score", json=rows).json()["version"] == "1"
        assert client.post("/v1/worlds/blobs/undo", json={}).status_code == 200
        assert client.get("/v1/models/blobs").json()["version"] is None
        assert client.post("/v1/models/blobs/score", json=rows).status_code == 409
        assert client.post("/v1/models/blobs/versions/1/score", json=rows).status_code == 404
        assert 'model="blobs",version="1"' not in client.get("/metrics").text
        assert client.post("/v1/worlds/blobs/redo", json={}).status_code == 200
        assert client.post("/v1/models/blobs/score", json=rows).json()["version"] == "1"


def test_models_are_listed_while_a_world_is_busy(world: Path) -> None:
    with serving(worlds={"blobs": world}) as client:
        handle, go = client.app.state.worlds.get("blobs"), threading.Event()  # type: ignore[attr-defined]
        busy = threading.Thread(target=handle.call, args=[lambda _: go.wait(5)])
        busy.start()
        found = [client.get(path).json() for path in ("/v1/models/blobs", "/v2/models/blobs")]
        answered = busy.is_alive()
        go.set()
        busy.join()
    assert answered, "the whole service waited for one world"
    assert [each["versions"] for each in found] == [["1"], ["1"]]
