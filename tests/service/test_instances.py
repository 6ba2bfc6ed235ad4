"""Two instances of the service on one PostgreSQL database."""

import time

import pytest

from offmap.loop import OpenWorld
from tests.loop.worlds import blobs, classifier
from tests.service.conftest import serving


def test_two_instances_share_a_world(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offmap.service.app._FOLLOW_SECONDS", 0.05)
    with OpenWorld.create("shared", classifier=classifier(), min_group=4, store=postgres) as world:
        world.teach(*blobs([0, 1, 2], 30))
        world.observe(blobs([0, 1, 2, 3, 4], 12, seed=1)[0])
    settings = {"worlds": {"blobs": "shared"}, "store": postgres}
    with serving(**settings) as one, serving(**settings) as two:
        seen = one.get("/v1/worlds/blobs/groups").json()
        group = seen["groups"][0]["id"]
        name = {"group": group, "label": 7, "revision": seen["revision"]}
        assert one.post("/v1/worlds/blobs/name", json=name).status_code == 200
        stale = two.post("/v1/worlds/blobs/name", json=name | {"label": 8})
        assert stale.status_code == 409
        assert stale.json()["changes"] == [f"group {group} was named 7"]
        assert one.post("/v1/worlds/blobs/learn", json={}).json()["version"] == 2
        row = one.get("/v1/worlds/blobs/rows", params={"id": seen["groups"][0]["rows"][0]}).json()["rows"][0]["row"]
        answers = [client.post("/v1/models/blobs/score", json={"rows": [row]}).json() for client in (one,)]
        end = time.monotonic() + 60
        while two.get("/v1/models/blobs").json()["version"] != "2" and time.monotonic() < end:
            time.sleep(0.05)
        answers.append(two.post("/v1/models/blobs/score", json={"rows": [row]}).json())
        assert answers[0] == answers[1]
        assert (answers[0]["version"], answers[0]["closest"]) == ("2", [7])
        assert two.post("/v1/models/blobs/versions/1/score", json={"rows": [row]}).json()["version"] == "1"
