"""A service in a process of its own, as a user starts it, that can be killed and started again."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

# Machines that run tests may be slow and busy.
_SECONDS = 180


class Server:
    """Runs ``offmap serve`` on a free port.

    Args:
        worlds: Folders of the worlds to serve.
        log: File that its messages go to.
        token: The token to ask for; None for none.
    """

    def __init__(self, *worlds: str | Path, log: Path, token: str | None = None) -> None:
        run = "from offmap.commands.app import main; main()"
        self._command = [sys.executable, "-c", run, "serve", *map(str, worlds), "--port", "0"]
        self._log, self._environment = log, {**os.environ, "OFFMAP_TOKEN": token or ""}
        self.address = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts it and waits until it answers."""
        with self._log.open("w") as log:
            self._process = subprocess.Popen(self._command, stderr=log, env=self._environment)
        end = time.monotonic() + _SECONDS
        while not (found := re.search(r"on (http://\S+)", self._log.read_text())):
            if self._process.poll() is not None or time.monotonic() > end:
                self._process.kill()
                raise AssertionError(f"the service did not start: {self._log.read_text()}")
            time.sleep(0.1)
        self.address = found[1]

    def stop(self) -> None:
        """Ends it in good order."""
        self._process.terminate()
        self._process.wait(_SECONDS)

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self._process.kill()
        self._process.wait(_SECONDS)
