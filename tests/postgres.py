"""A PostgreSQL server of one's own: on a socket in a temporary folder, gone with the tests."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_DEBIAN = Path("/usr/lib/postgresql")


def programs() -> Path | None:
    """The folder of ``initdb`` and ``postgres``: on the path, or where Debian puts them, the newest first."""
    if (found := shutil.which("initdb")) is not None:
        return Path(found).resolve().parent
    versions = sorted(_DEBIAN.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    return versions[-1].parent if versions else None


def required_programs() -> Path:
    """The folder of the programs; without one the test skips, or fails where PostgreSQL is required."""
    if (found := programs()) is not None:
        return found
    reason = "no PostgreSQL server is installed; apt-get install postgresql gets one"
    if os.environ.get("OFFMAP_REQUIRE_POSTGRES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def server() -> Iterator[str]:
    """The URL of a new and empty server."""
    bin = required_programs()
    # A short path: the name of a socket has 107 characters at most.
    folder = Path(tempfile.mkdtemp(prefix="offmap-pg-", dir="/tmp"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        data = folder / "data"
        command = [*_unprivileged(), str(bin / "initdb"), "-D", str(data), "-U", "offmap", "-A", "trust", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        # No crash of the machine is tested, so that the server need not wait for the disk.
        settings = ["listen_addresses=", f"unix_socket_directories={folder}", "fsync=off"]
        flags = [word for setting in settings for word in ("-c", setting)]
        command = [*_unprivileged(), str(bin / "postgres"), "-D", str(data), *flags]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        try:
            _wait_until_ready(folder, process)
            yield f"postgresql://offmap@/postgres?host={folder}"
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
    finally:
        shutil.rmtree(folder)


def _unprivileged() -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def _wait_until_ready(folder: Path, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        if "ready to accept connections" in (folder / "log").read_text():
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"PostgreSQL did not start: {(folder / 'log').read_text()}")
