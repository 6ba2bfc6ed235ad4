"""What the wheel holds: the library and nothing that reproduces papers."""

import ast
import tomllib
from pathlib import Path

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
