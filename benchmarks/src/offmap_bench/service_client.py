"""Clients of a service: one that asks again and again, and many at a time."""

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Asked:
    """A request.

    Args:
        path: Its address.
        body: Its content.
        headers: Its headers.
    """

    path: str
    body: bytes
    headers: dict[str, str]

    def raw(self) -> bytes:
        """The bytes that go over the wire."""
        lines = [f"POST {self.path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(self.body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join([*lines, "", ""]).encode() + self.body


def as_json(model: str, rows: NDArray[Any]) -> Asked:
    """Rows as JSON."""
    content = json.dumps({"rows": rows.tolist()}).encode()
    return Asked(f"/v1/models/{model}/score", content, {"Content-Type": "application/json"})


def as_bytes(model: str, rows: NDArray[Any]) -> Asked:
    """Rows as a tensor of bytes, in and out."""
    X = np.ascontiguousarray(rows, dtype="<f4")
    about = {"name": "rows", "shape": X.shape, "datatype": "FP32", "parameters": {"binary_data_size": X.nbytes}}
    header = json.dumps({"inputs": [about], "parameters": {"binary_data_output": True}}).encode()
    headers = {"Inference-Header-Content-Length": str(len(header)), "Content-Type": "application/octet-stream"}
    return Asked(f"/v2/models/{model}/infer", header + X.tobytes(), headers)


class Client:
    """One connection that is kept open.

    Args:
        port: Port of the service.
    """

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)

    def ask(self, asked: Asked) -> bytes:
        """The answer; anything but 200 is an error."""
        self._connection.request("POST", asked.path, asked.body, asked.headers)
        return self._read()

    def act(self, path: str, content: object) -> Any:
        """What an act answers."""
        return json.loads(self.ask(Asked(path, json.dumps(content).encode(), {"Content-Type": "application/json"})))

    def get(self, path: str) -> bytes:
        """A page."""
        self._connection.request("GET", path, headers={"Accept": "text/html"})
        return self._read()

    def _read(self) -> bytes:
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {content[:200]!r}")
        return content

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


def together(clients: Sequence[Client], asked: Asked, times: int) -> None:
    """Sends a request so many times over all clients, which share the work."""

    def ask(client: Client) -> None:
        for _ in range(times // len(clients)):
            client.ask(asked)

    threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@dataclass
class Tally:
    """What many clients met.

    Args:
        seconds: Time of each request that was answered with 200.
        refused: Requests that were answered with 429.
        failed: All others.
    """

    seconds: list[float]
    refused: int = 0
    failed: int = 0


async def crowd(
    port: int, asked: Asked, clients: int, seconds: float, meanwhile: Callable[[], None] | None = None
) -> Tally:
    """Lets clients ask at the same time, each on a connection of its own, one request after another.

    Args:
        port: Port of the service.
        asked: What they ask.
        clients: How many there are.
        seconds: For how long.
        meanwhile: Runs in a thread while they ask.
    """
    tally, end, raw = Tally([]), perf_counter() + seconds, asked.raw()
    others = [asyncio.to_thread(meanwhile)] if meanwhile is not None else []
    await asyncio.gather(*(_insist(port, raw, end, tally) for _ in range(clients)), *others)
    return tally


async def _insist(port: int, raw: bytes, end: float, tally: Tally) -> None:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while perf_counter() < end:
            start = perf_counter()
            writer.write(raw)
            status, wait = await _answered(reader)
            if status == 200:
                tally.seconds.append(perf_counter() - start)
            elif status == 429:
                tally.refused += 1
                await asyncio.sleep(wait)
            else:
                tally.failed += 1
        writer.close()
        await writer.wait_closed()
    except (OSError, asyncio.IncompleteReadError):
        tally.failed += 1


async def _answered(reader: asyncio.StreamReader) -> tuple[int, float]:
    """The status of an answer, and the seconds after which to try again."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    await reader.readexactly(int(headers["content-length"]))
    return int(head[0].split()[1]), float(headers.get("retry-after", 0))
