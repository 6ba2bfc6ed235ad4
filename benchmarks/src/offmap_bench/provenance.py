"""What a result was made with: versions, commit, processor, and numbers of cores and threads."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from offmap_bench.places import REPOSITORY

CODE = ("src", "benchmarks/src")
# What results depend on; those that are not installed, such as simulators, are stored as None.
_PACKAGES = ("offmap", "torch", "numpy", "scikit-learn", "gymnasium", "mujoco")
# Linux describes the processor here, one block per core.
_CPUINFO = Path("/proc/cpuinfo")


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def commit() -> str | None:
    """Returns the commit of the running code, with a ``+`` if the code was changed; None outside its repository."""
    # Inside another project's repository the code is not tracked, and that project's commit does not describe it.
    head = _git("rev-parse", "HEAD") if _git("ls-files", "--", __file__) else ""
    return head + "+" * bool(_git("status", "--porcelain", "--", *CODE)) if head else None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def processor(cpuinfo: Path = _CPUINFO) -> str:
    """Returns the processor and the vector instructions that torch uses on it: rounding depends on both."""
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name = facts.get("model name") or platform.processor() or platform.machine()
    # Virtual machines hide the name of the model, but not its numbers.
    numbers = [f"{key.removeprefix('cpu ')} {facts[key]}" for key in ("cpu family", "model") if key in facts]
    return ", ".join([name, *numbers, torch.backends.cpu.get_cpu_capability()])


def provenance() -> dict[str, Any]:
    """Returns the versions, commit, processor, and numbers of cores and torch threads to store with a result."""
    versions = {package: _version(package) for package in _PACKAGES}
    return {
        "versions": {**versions, "python": platform.python_version()},
        "commit": commit(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "processor": processor(),
    }
