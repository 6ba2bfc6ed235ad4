"""What a service is told when it starts: what it serves, who may use it, and its limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from offmap import parameters
from offmap.parameters import Count, Positive


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much a service takes on; what goes beyond is refused with 413, 408 or 429, and nothing is lost.

    Args:
        body_bytes: Largest body of a request. It is counted while it arrives and cut off there.
        held_bytes: Most bytes of bodies that are held at a time, over all requests.
        rows: Most rows in one request.
        cells: Most cells in one uploaded table, decompressed.
        explained_rows: Most rows that one request may have explained, which takes far longer than to score them.
        upload_seconds: Longest time for the body of a request to arrive.
        answer_seconds: Longest time that a request waits for its scores.
        connections: Most connections at a time.
        queue: Most requests that wait to be scored, and most acts that wait for one world.
        batch_rows: Most rows that are scored together; small requests that wait at the same time share a batch.
        workers: Threads that score.
        rate: Requests per second that one address may send over time.
        burst: Requests that one address may send at once.
        versions: Versions of one model that are kept in memory.
        shutdown_seconds: Longest time that a stopping service gives accepted requests.
    """

    body_bytes: Count = 64 << 20
    held_bytes: Count = 512 << 20
    rows: Count = 100_000
    cells: Count = 20_000_000
    explained_rows: Count = 20
    upload_seconds: Positive = 60.0
    answer_seconds: Positive = 60.0
    connections: Count = 1000
    queue: Count = 256
    batch_rows: Count = 1024
    workers: Count = 1
    rate: Positive = 500.0
    burst: Count = 1000
    versions: Count = 3
    shutdown_seconds: Positive = 30.0

    def __post_init__(self) -> None:
        parameters.check(self)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What to serve, to whom, and within which limits.

    Args:
        worlds: Folder of each world, or its name in the database, by the name in its addresses.
        models: Model file, or folder of model files, by the name in its addresses.
        token: What a client must show; None if everyone who can reach the service may use it.
        hosts: Names under which the service answers while it has no token. Others are refused, so that a page of
            another site cannot reach it through a name of its own that it points at this machine.
        store: Address of the database that holds the worlds; None if each is in its folder.
        trusted: What model files may use beyond themselves and Offmap, as ``offmap.load`` takes it.
        limits: How much the service takes on.

    Example:
        >>> Settings(models={"intents": Path("intents.safetensors")}).limits.rows
        100000
    """

    worlds: Mapping[str, str | Path] = field(default_factory=dict)
    models: Mapping[str, Path] = field(default_factory=dict)
    token: str | None = None
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "::1")
    store: str | None = None
    trusted: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < 16:
            raise ValueError(
                "token must have at least 16 characters; python -c 'import secrets; "
                "print(secrets.token_urlsafe())' makes one"
            )
        if both := sorted(self.worlds.keys() & self.models.keys()):
            raise ValueError(f"the name {both[0]!r} stands for a world and for a model; rename one")
