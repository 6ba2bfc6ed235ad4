"""The API reference: it is what the docstrings say, and it leaves no public name out."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import offmap

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_reference", DOCS / "write_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(writer: ModuleType) -> dict[str, str]:
    rendered: dict[str, str] = writer.render()
    return rendered


def test_the_stored_pages_are_those_of_the_docstrings(pages: dict[str, str]) -> None:
    stored = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md")}
    changed = [name for name in pages.keys() | stored.keys() if pages.get(name) != stored.get(name)]
    assert not changed, "run 'python docs/write_reference.py' and commit what it writes"


def test_every_public_package_has_a_page(writer: ModuleType) -> None:
    assert set(writer.PACKAGES) >= set(offmap._MODULES)


def test_a_method_shows_its_own_parameters_and_where_the_others_are(pages: dict[str, str]) -> None:
    section = pages["offmap.density.md"].partition("## MahalanobisDetector\n")[2].partition("\n## ")[0]
    base = pages["offmap.base.md"].partition("## Detector\n")[2].partition("\n## ")[0]
    assert "| `alpha` | `0.05` |" in base
    assert "| `alpha` |" not in section
    assert "From [`Detector`](offmap.base.md#detector): parameters `alpha`, `calibration`" in section
    assert ">>> " in section


def test_nothing_of_the_machine_is_in_the_pages(pages: dict[str, str]) -> None:
    assert not any(" at 0x" in text or str(DOCS.parent) in text for text in pages.values())
