"""Importing the package, and asking the command line for help, must not wait for the large libraries."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import offmap
from offmap.collaborative import ClosedFormDetector

PACKAGES = [found.name for found in pkgutil.walk_packages(offmap.__path__, "offmap.") if found.ispkg]

HEAVY = ("torch", "sklearn", "pandas", "scipy", "matplotlib")


@pytest.mark.parametrize("statement", ["import offmap", "import offmap.commands.app", "import offmap; dir(offmap)"])
def test_importing_takes_no_large_library(statement: str) -> None:
    report = f"{statement}; import sys; print(*(name for name in {HEAVY} if name in sys.modules))"
    ended = subprocess.run([sys.executable, "-c", report], check=True, capture_output=True, text=True)
    assert ended.stdout.split() == []
    assert ended.stderr == ""


def test_commands_that_draw_nothing_do_not_load_the_plotting_library() -> None:
    report = "import offmap.workflow, sys; print('matplotlib' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", report], check=True, capture_output=True, text=True)
    assert ended.stdout.split() == ["False"]


def test_loading_a_closed_form_does_not_import_the_compiler(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(120, 2))
    model = ClosedFormDetector(features="pca", alpha=0.2).fit(rows, np.arange(120) % 3)
    model.save(tmp_path / "model.safetensors")
    report = "import sys, offmap; offmap.load(sys.argv[1]); print('torch._dynamo' in sys.modules)"
    command = [sys.executable, "-c", report, str(tmp_path / "model.safetensors")]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() == ["False"]


def test_every_public_name_is_there_when_it_is_asked_for() -> None:
    for name in offmap.__all__:
        assert name in dir(offmap)
        assert getattr(offmap, name) is not None
    assert offmap.density.VAEDetector is not None
    with pytest.raises(AttributeError, match="module 'offmap' has no attribute 'densty'"):
        _ = offmap.densty


@pytest.mark.parametrize("package", PACKAGES)
def test_no_public_name_is_also_a_module(package: str) -> None:
    """Which of the two ``offmap.family.name`` is would depend on what was imported last."""
    found = importlib.import_module(package)
    modules = {module.name for module in pkgutil.iter_modules(found.__path__)}
    assert modules.isdisjoint(getattr(found, "__all__", ()))
