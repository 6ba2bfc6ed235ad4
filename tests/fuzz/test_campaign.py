"""Two thousand damaged files and odd inputs: each ends in a documented error or a score, in time and within memory."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_file_or_input_ends_in_an_undocumented_error() -> None:
    # A process of its own, whose memory can be limited.
    command = [sys.executable, "-m", "tests.fuzz.campaign", "--files", "1000", "--inputs", "1000"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert ended.stdout, ended.stderr
    found = json.loads(ended.stdout)
    assert found["failures"] == []
    outcomes = found["outcomes"]
    assert sum(outcomes.values()) == 2000
    assert not outcomes.get("damaged model scored")
    assert outcomes["edited model refused"] > outcomes["edited model scored"] > 0
    assert outcomes["data file read"] > 0
