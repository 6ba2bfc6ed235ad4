"""What the wheel holds: the library and nothing that reproduces papers."""

import ast
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from setuptools import find_packages

ROOT = Path(__file__).parents[1]


def imports_of(path: Path) -> set[str]:
    """The names of the top-level packages that a module imports, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.partition(".")[0])
    return names


def test_the_wheel_holds_the_library_only() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert settings["packages"]["find"] == {"where": ["src"]}
    packages = find_packages(str(ROOT / "src"))
    assert "offmap.density" in packages
    assert {package.partition(".")[0] for package in packages} == {"offmap"}
    assert [package for package in packages if "bench" in package] == []
    assert all(any((ROOT / "src" / "offmap").glob(each)) for each in settings["package-data"]["offmap"])


def test_the_wheel_holds_every_file_of_the_review_page() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    library = ROOT / "src" / "offmap"
    packed = {path for each in settings["package-data"]["offmap"] for path in library.glob(each)}
    assert {path for path in library.rglob("*") if path.suffix in (".html", ".css", ".js", ".svg", ".txt")} <= packed


def test_no_module_of_the_library_imports_the_benchmarks() -> None:
    modules = sorted((ROOT / "src" / "offmap").rglob("*.py"))
    assert len(modules) > 50
    assert [str(path) for path in modules if "offmap_bench" in imports_of(path)] == []
    assert not any("bench" in path.stem for path in modules)


def pins(path: str) -> dict[str, Requirement]:
    """The lines of a file of pinned versions by the name of the package, without hashes."""
    lines = [line.partition("#")[0].partition("--hash")[0] for line in (ROOT / path).read_text().splitlines()]
    requirements = [Requirement(line) for line in lines if line.strip()]
    return {canonicalize_name(each.name): each for each in requirements}


def test_ci_installs_the_pinned_versions_and_checks_their_hashes() -> None:
    hashed, pinned = pins(".ci/hashes.txt"), pins("constraints.txt")
    lines = [line for line in (ROOT / ".ci" / "hashes.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"\S+==\S+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    # pip's list of installed packages, from which constraints.txt is made, leaves setuptools out.
    assert {name: str(each.specifier) for name, each in hashed.items() if name != "setuptools"} == {
        name: str(pinned[name].specifier) for name in hashed if name != "setuptools"
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)]
    assert {canonicalize_name(Requirement(each).name) for each in asked} <= set(hashed)
