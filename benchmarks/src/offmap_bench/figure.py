"""A figure of a paper: drawn by one function into one picture."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from offmap_bench.places import HOME
from offmap_bench.table import slug

FIGURES = HOME.parent / "docs" / "figures"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of a paper, ready to be drawn again.

    Args:
        name: What the command line calls it, and the name of its picture.
        source: The paper and the number of its figure.
        caption: What the figure shows.
        draw: Called as ``draw(path, profile)``; writes the PNG at ``path``.
        needs: Data sets that must be there.

    Example:
        >>> figure = Figure(name="dots", source="Example, Figure 1", draw=lambda path, profile: path.touch())
        >>> figure.picture(Path("pictures")).as_posix()
        'pictures/dots.png'
    """

    name: str
    source: str
    caption: str = ""
    draw: Callable[[Path, str], None]
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.name != slug(self.name):
            raise ValueError(f"name must be lower-case words joined by hyphens; got {self.name!r}")

    def picture(self, folder: Path = FIGURES) -> Path:
        """Where in ``folder`` the picture lies."""
        return folder / f"{self.name}.png"

    def save(self, profile: str = "cpu", folder: Path = FIGURES) -> Path:
        """Draws the picture into ``folder`` and says where it is."""
        path = self.picture(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.draw(path, profile)
        return path
