"""A figure of a paper, drawn by one function into one PNG file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from offmap_bench.places import FIGURES
from offmap_bench.table import slug


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of a paper and the function that draws it.

    Args:
        name: Name on the command line and of the PNG file.
        source: The paper and the number of the figure.
        caption: What the figure shows.
        draw: Called as ``draw(path, profile)``; writes a PNG file to ``path``.
        needs: Names of the data sets it needs.

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
        """Returns the path of the PNG file in ``folder``."""
        return folder / f"{self.name}.png"

    def save(self, profile: str = "cpu", folder: Path = FIGURES) -> Path:
        """Draws the figure into ``folder`` and returns the path of the PNG file."""
        path = self.picture(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.draw(path, profile)
        return path
