"""The curl lines of the guide are run against a service, and answer what the guide says."""

import doctest
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from offmap.service.demo_world import make_demo_world
from tests.command_line import Run
from tests.service.browser.server import Server

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "service.md"


def examples() -> list[tuple[str, str]]:
    """Commands and what they print, in the order of the guide."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = example.partition("\n")
            found.append((command, printed))
    return found


def test_the_guide_is_true(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl on this machine; apt-get install curl gets it")
    monkeypatch.chdir(tmp_path)
    (fit, _), *asked = examples()
    assert run(*fit.split()[1:]).code == 0
    make_demo_world(tmp_path / "digits.world")
    same = doctest.OutputChecker().check_output
    with Server("iris.safetensors", "digits.world", log=tmp_path / "log") as server:
        for command, printed in asked:
            line = command.replace("localhost:8000", server.address)
            done = subprocess.run(line, shell=True, capture_output=True, text=True, check=True)
            shown = done.stdout if done.stdout.endswith("\n") or not done.stdout else f"{done.stdout}\n"
            wanted = printed if not printed.endswith(",...\n") else f"{printed[:-4]}...\n"
            assert same(wanted, shown, doctest.ELLIPSIS), f"{command}\n{printed}{shown}"
    assert len(asked) >= 12
