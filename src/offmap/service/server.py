"""Runs the application until it is told to stop, and then finishes what was accepted."""

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import uvicorn

from offmap.loop.home import JOURNAL
from offmap.service.app import create_app
from offmap.service.settings import Settings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def serve(settings: Settings, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serves until the process is interrupted or terminated; accepted requests are answered first.

    Args:
        settings: What to serve.
        host: Address to listen on. Without a token it must be one of this machine alone.
        port: Port to listen on; 0 for one that is free.
        started: Called with the address once the service answers.
    """
    require_safe(host, settings.token)
    failures: list[Exception] = []
    with _listen(host, port) as listening:
        address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"

        def loaded(error: Exception | None) -> None:
            if error is None:
                started(address)
            else:
                failures.append(error)
                server.should_exit = True

        named = replace(settings, hosts=(*settings.hosts, host))
        server = uvicorn.Server(_configuration(named, loaded))
        server.run(sockets=[listening])
    if failures:
        raise failures[0]


def _configuration(settings: Settings, loaded: Callable[[Exception | None], None]) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(settings, background=loaded),
        lifespan="on",
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=settings.limits.connections,
        timeout_graceful_shutdown=round(settings.limits.shutdown_seconds),
    )


def require_safe(host: str, token: str | None) -> None:
    """Refuses to listen where others can reach the service, unless they must show a token.

    Example:
        >>> require_safe("127.0.0.1", None)
        >>> require_safe("0.0.0.0", None)
        Traceback (most recent call last):
        ValueError: host '0.0.0.0' can be reached from other machines; set OFFMAP_TOKEN, or use 127.0.0.1
    """
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local and token is None:
        raise ValueError(f"host {host!r} can be reached from other machines; set OFFMAP_TOKEN, or use 127.0.0.1")


def sort_out(given: Iterable[str], store: str | None = None) -> tuple[dict[str, str | Path], dict[str, Path]]:
    """Worlds and models by name, from paths or ``name=path``; the name of a path is that of its file.

    A folder with a journal is a world; a file is a model, and a folder of model files is a model with versions. With a
    store, what is no path is the name of a world in it.
    """
    worlds: dict[str, str | Path] = {}
    models: dict[str, Path] = {}
    for each in given:
        name, path = _named(each)
        if name in worlds or name in models:
            raise ValueError(f"the name {name!r} stands for two things; give one of them another, as NAME={path}")
        if store is not None and not path.exists():
            worlds[name] = str(path)
        elif not path.exists():
            raise FileNotFoundError(f"there is no file or folder {path}")
        elif store is None and (path / JOURNAL).is_file():
            worlds[name] = path
        else:
            models[name] = path
    return worlds, models


def _named(given: str) -> tuple[str, Path]:
    name, equals, path = given.partition("=")
    if not equals or Path(given).exists():
        name, path = Path(given).resolve().stem, given
    if not _NAME.fullmatch(name):
        raise ValueError(f"the name {name!r} does not fit into an address; give another, as NAME={path}")
    return name, Path(path)


def _listen(host: str, port: int) -> socket.socket:
    """A socket that is bound already: a port in use is an error at once, before anything is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise ValueError(f"cannot listen on {host} port {port}: {error.strerror}; choose another --port") from error
    # Accepted connections inherit it; without it, the second part of an answer waits 40 ms for the client's
    # acknowledgement of the first.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
