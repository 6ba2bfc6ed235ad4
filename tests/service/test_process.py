"""A service as a process: what it acknowledged survives kill -9, and it finishes what it accepted before it stops."""

import contextlib
import http.client
import json
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from offmap.loop import OpenWorld
from tests.loop.worlds import blobs
from tests.service.browser.server import Server


def connect(server: Server) -> http.client.HTTPConnection:
    address = urlsplit(server.address)
    return http.client.HTTPConnection(str(address.hostname), address.port, timeout=120)


def post(connection: http.client.HTTPConnection, path: str, content: Any) -> tuple[int, Any]:
    connection.request("POST", path, json.dumps(content), {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def act_until_killed(server: Server, world: Path, start: int) -> list[str]:
    """Observes rows and labels them, one request after another, and returns the ids that were acknowledged."""
    acknowledged: list[str] = []

    def act() -> None:
        try:
            for number in range(start, start + 10_000):
                rows, identity = blobs([3], 1, seed=number)[0].tolist(), f"row {number}"
                assert post(connection, f"/v1/worlds/{world.stem}/observe", {"rows": rows, "ids": [identity]})[0] == 200
                label = {"row": identity, "label": 3}
                assert post(connection, f"/v1/worlds/{world.stem}/label", label)[0] == 200
                acknowledged.append(identity)
        except (OSError, http.client.HTTPException):
            pass

    connection = connect(server)
    client = threading.Thread(target=act)
    client.start()
    while len(acknowledged) < 5:
        assert client.is_alive()
        time.sleep(0.01)
    server.kill()
    client.join()
    connection.close()
    return acknowledged


def test_nothing_is_lost_by_kill_9_nor_by_a_stop(world: Path, tmp_path: Path) -> None:
    server = Server(world, log=tmp_path / "log")
    server.start()
    acknowledged = act_until_killed(server, world, start=10_000)
    with server:
        answers = finished_while_stopping(server, world)
    assert [status for status, _ in answers] == [200] * 3
    assert all(len(content["novelty"]) == 100 for _, content in answers)
    with OpenWorld.open(world) as opened:
        labels = {row.id: row.label for row in opened.state.rows.values()}
    assert len(acknowledged) >= 5
    assert [identity for identity in acknowledged if labels.get(identity) != 3] == []


def finished_while_stopping(server: Server, world: Path) -> list[tuple[int, Any]]:
    """Answers to requests of which the service has read one half when it is told to stop."""
    body = json.dumps({"rows": blobs([0, 3], 50, seed=2)[0].tolist()}).encode()
    half = len(body) // 2
    with ExitStack() as closing:
        later, *connections = (closing.enter_context(contextlib.closing(connect(server))) for _ in range(4))
        for connection in connections:
            connection.putrequest("POST", f"/v1/models/{world.stem}/score")
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body[:half])
        # It has read the first halves once it answers a later request.
        later.request("GET", "/v2/health/live")
        assert later.getresponse().read() == b'{"live":true}'
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        time.sleep(0.5)
        for connection in connections:
            connection.send(body[half:])
        answers = [connection.getresponse() for connection in connections]
        found = [(answer.status, json.loads(answer.read())) for answer in answers]
        stopping.join()
        return found
