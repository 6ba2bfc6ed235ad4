"""A connection to Ray: one that runs already, or one that is started on this machine."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from offmap.errors import WorkFailed, reason_of
from offmap.scale.threads import available_cores

_SECONDS_TO_ANSWER = 5.0


def ray_module() -> Any:
    """Ray, or an error that says how to install it."""
    try:
        import ray
    except ImportError as error:
        raise ImportError("Ray is not installed; install it with: pip install 'offmap[ray]'") from error
    return ray


@contextmanager
def connected(address: str | None = None) -> Iterator[None]:
    """Connects to a cluster for the block. A connection that the caller has made already is used and kept.

    Args:
        address: Address of a running cluster, as ``host:6379`` or ``ray://host:10001``; by default Ray is started on
            this machine, with as many CPUs as this process may use, and ended with the block.

    Raises:
        WorkFailed: No cluster answers at the address.
    """
    ray = ray_module()
    if ray.is_initialized():
        if address is not None:
            raise ValueError("ray_address must be left out: this process is connected to a Ray cluster already")
        yield
        return
    if address is None:
        ray.init(num_cpus=available_cores(), include_dashboard=False, log_to_driver=False, logging_level="error")
    else:
        _require_answer(address)
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error")
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise WorkFailed(f"cannot connect to the Ray cluster at {address}: {reason_of(error)}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _require_answer(address: str) -> None:
    """Asks whether anything listens at an address: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if address in ("auto", "local"):
        return
    if not colon or not host or not port.isdecimal():
        raise ValueError(f"ray_address must be host:port, ray://host:port or auto; got {address!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_ANSWER).close()
    except (OSError, OverflowError) as error:
        raise WorkFailed(
            f"no Ray cluster answers at {address}: {reason_of(error)}; start one with: ray start --head"
        ) from error
