import sys
from pathlib import Path

import pytest

from offmap_bench import Figure
from offmap_bench.tables import discover

MODULE = """
from offmap_bench import Figure
TABLES = (Figure(name={name!r}, source="s", draw=lambda path, profile: path.write_text(profile)),)
"""


def write_package(folder: Path, package: str, modules: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / package / "nested").mkdir(parents=True)
    for place in (folder / package, folder / package / "nested"):
        (place / "__init__.py").write_text("", encoding="utf-8")
    for path, text in modules.items():
        (folder / package / path).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)


def test_what_modules_list_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"a.py": MODULE.format(name="one"), "nested/b.py": MODULE.format(name="two"), "c.py": "helper = 1"}
    write_package(tmp_path, "papers_found", modules, monkeypatch)
    assert list(discover("papers_found")) == ["one", "two"]


def test_names_are_unique(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"a.py": MODULE.format(name="one"), "b.py": MODULE.format(name="one")}
    write_package(tmp_path, "papers_twice", modules, monkeypatch)
    with pytest.raises(ValueError, match=r"the name 'one' is used twice: in papers_twice\.a and papers_twice\.b"):
        discover("papers_twice")


def test_every_table_of_the_papers_is_well_formed() -> None:
    for name, table in discover().items():
        assert table.name == name
        assert table.source


def test_a_figure_is_drawn_with_the_profile_into_its_folder(tmp_path: Path) -> None:
    def draw(path: Path, profile: str) -> None:
        path.write_text(profile, encoding="utf-8")

    figure = Figure(name="dots", source="s", draw=draw)
    assert figure.save("paper", tmp_path / "new").read_text(encoding="utf-8") == "paper"
    with pytest.raises(ValueError, match="name must be"):
        Figure(name="Some Dots", source="s", draw=lambda path, profile: None)
