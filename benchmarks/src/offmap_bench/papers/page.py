"""The pages of results: one per paper, in the paper's own order, with what is stated and how the protocols differ."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from offmap_bench.claims import Claim
from offmap_bench.figure import Figure
from offmap_bench.table import Table


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page of results.

    Args:
        name: File name without its suffix.
        title: Heading.
        about: What the page covers, in a sentence.
        items: Names of its tables and figures, in order.
        claims: What the paper states.
        differences: How the profile ``cpu`` differs from the paper: what the paper does, and what is done here.
    """

    name: str
    title: str
    about: str = ""
    items: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    differences: Mapping[str, str] = field(default_factory=dict)


def assigned(pages: Iterable[Page], items: Iterable[Table | Figure]) -> list[tuple[Page, list[Table | Figure]]]:
    """The tables and figures of each page; those that no page names go to the pages ``speed`` and ``toolkit``."""
    known = {item.name: item for item in items}
    named = [(page, [known.pop(name) for name in page.items if name in known]) for page in pages]
    rest = {"speed": [], "toolkit": []}  # type: dict[str, list[Table | Figure]]
    for item in known.values():
        rest["speed" if item.name.startswith("speed-") else "toolkit"].append(item)
    named += [(OWN[name], found) for name, found in rest.items()]
    return [(page, found) for page, found in named if found]


OWN = {
    "toolkit": Page(
        name="toolkit",
        title="Benchmarks of the toolkit",
        about="Beyond the papers: false-alarm rates, simple baselines, tables, explanations, new classes.",
    ),
    "speed": Page(
        name="speed", title="Speed", about="Time to fit and to score, against a plain loop and other libraries."
    ),
}
