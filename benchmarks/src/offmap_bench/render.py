"""The pages of results as Markdown, and one table for the terminal."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import rich.table
from rich.text import Text

from offmap.files import replacing
from offmap_bench.claims import Claim, Outcome, judge
from offmap_bench.figure import Figure
from offmap_bench.grids import Entry, Grid, grids_of
from offmap_bench.papers import PAPERS, Page, assigned
from offmap_bench.places import PAGE, RESULTS
from offmap_bench.run import Cell
from offmap_bench.samples import read_samples
from offmap_bench.table import Table
from offmap_bench.tally import Tally, tallies

LEGEND = """\
An entry reads *ours* (*the paper's*): our mean ± sample standard deviation over the seeds, and in parentheses the
number the paper prints. Entries that were not run are blank; numbers that the paper does not print have no
parentheses. **Bold** marks our best method. – means that the metric is undefined, and [2 of 3 seeds] that it is
defined for those seeds only. A mean over columns is of the seeds that all columns have. † marks results of an older
configuration. The profile `cpu` is sized for two cores; `paper` follows the paper's own protocol. Seconds are summed
over all runs, which shared the machine with other work. The commit is the last at which each cell came out: all seeds,
or the first one again, equal to a millionth or, on another processor, within three standard deviations of the seeds."""
OVERVIEW = """\
Written by `python -m offmap_bench --render` from the stored results. Each line is one statement of a paper. *Beaten*:
better than the paper's number by more than two standard errors and one percent. *Reached*: at most one standard error
or one percent below it; for a statement of order, the same order by more than two standard errors. *Contradicted*:
the opposite order by as much, or a failure that does not occur. † marks results of an older configuration. Seeds are
ours; the papers' protocols and ours are compared on the linked pages. Below the statements, every number that the paper
prints is counted by the same rule. *Suggested rate*: the rate of false alarms that the unlabelled test rows suggest."""

_OUTCOMES: dict[Outcome, str] = {
    "beaten": "better here",
    "reached": "as good",
    "not reached": "worse or different",
    "not run": "not run",
}
# Metrics of a table that are seen without unfolding.
_UNFOLDED = 2


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|")


def _line(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _markdown_entry(entry: Entry) -> str:
    ours = f"**{entry.ours}**" if entry.best else entry.ours
    return _escape(f"{ours} ({entry.paper})".strip() if entry.paper else ours)


def _markdown_grid(grid: Grid) -> str:
    head = _line(["", *map(_escape, grid.top)])
    rule = _line(["---"] * (len(grid.top) + 1))
    body = [
        _line([_escape(label), *map(_markdown_entry, entries)])
        for label, entries in zip(grid.side, grid.body, strict=True)
    ]
    title = [f"`{grid.title}`", ""] if grid.title else []
    return "\n".join([*title, head, rule, *body])


def _markdown_grids(grids: Sequence[Grid]) -> list[str]:
    """The grids of one table: what was not measured is left out, and all but the first metrics are folded."""
    filled = [grid for grid in grids if any(entry.ours or entry.paper for entries in grid.body for entry in entries)]
    shown, folded = filled[:_UNFOLDED], filled[_UNFOLDED:]
    names = ", ".join(f"<code>{grid.title}</code>" for grid in folded)
    opened = [f"<details><summary>{names}</summary>", *map(_markdown_grid, folded), "</details>"] if folded else []
    return [*map(_markdown_grid, shown), *opened]


def _summary(profile: str, cells: Sequence[Cell], total: int) -> str:
    counts = [len(cell.runs) for cell in cells]
    seeds = f"{min(counts)}–{max(counts)}" if min(counts) < max(counts) else f"{max(counts)}"
    seconds = sum(run.seconds for cell in cells for run in cell.runs)
    ran = f"{len(cells)} of {total} cells, seeds per cell: {seeds}, {seconds:,.0f} s in total, {_commits(cells)}"
    return f"Profile `{profile}`: {ran}.{_single(cells)}"


def _single(cells: Sequence[Cell]) -> str:
    """Names the rows that have one seed where others have more, with their columns if there are several."""
    single: dict[str, list[str]] = {}
    for cell in cells:
        if len(cell.runs) == 1:
            single.setdefault(cell.row, []).append(cell.column)
    if all(len(cell.runs) == 1 for cell in cells) or not single:
        return ""
    several = len({cell.column for cell in cells}) > 1
    named = [f"{row} ({', '.join(columns)})" if several else row for row, columns in single.items()]
    return f" One seed: {'; '.join(named)}."


def _commits(cells: Sequence[Cell]) -> str:
    """The commit that gives the cells, or how many there are."""
    found = list(dict.fromkeys((cell.at or "unknown")[:7] for cell in cells))
    return f"commit {found[0]}" if len(found) == 1 else f"{len(found)} commits, the last {found[-1]}"


def _table_section(table: Table, results: Path) -> list[str]:
    notes = f"<details><summary>Protocol</summary>\n\n{table.notes}\n\n</details>" if table.notes else ""
    blocks = [table.caption, f"Data: {', '.join(table.needs)}." if table.needs else ""]
    for profile in table.profiles:
        samples, cells = read_samples(table, profile, results)
        if cells:
            total = len(table.rows) * len(table.columns)
            blocks += [_summary(profile, cells, total), *_markdown_grids(grids_of(table, samples))]
    return [*(blocks if len(blocks) > 2 else [*blocks, "Not run yet."]), notes]


def _figure_section(figure: Figure, figures: Path, out: Path) -> list[str]:
    picture = figure.picture(figures)
    return [
        f"![{figure.name}]({Path(os.path.relpath(picture, out.parent)).as_posix()})"
        if picture.exists()
        else "Not drawn yet.",
        figure.caption,
    ]


def page_of(page: Page, items: Iterable[Table | Figure], results: Path, figures: Path, out: Path) -> str:
    """Returns one page of tables and figures as Markdown, to be written to ``out``."""
    items = list(items)
    contents = "\n".join(f"- [{item.name}](#{item.name}): {item.caption or item.source}" for item in items)
    blocks = [f"# {page.title}", page.about, _differences(page), LEGEND, contents]
    for item in items:
        blocks += [f"## {item.name}", f"*{item.source}*"]
        blocks += _table_section(item, results) if isinstance(item, Table) else _figure_section(item, figures, out)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _differences(page: Page) -> str:
    if not page.differences:
        return ""
    lines = [_line(map(_escape, pair)) for pair in page.differences.items()]
    return "\n".join([_line(["the paper", "here, profile `cpu`"]), _line(["---", "---"]), *lines])


def overview(pages: Iterable[tuple[Page, list[Table | Figure]]], results: Path, folder: str) -> str:
    """Returns the page of verdicts as Markdown; ``folder`` holds the other pages."""
    blocks = ["# Benchmarks", OVERVIEW]
    for page, items in pages:
        link = f"{folder}/{page.name}.md"
        blocks += [f"## {page.title}", f"{page.about} [All results]({link})."]
        tables = {item.name: item for item in items if isinstance(item, Table)}
        verdicts = [
            _verdict(claim, tables[claim.table], results, link) for claim in page.claims if claim.table in tables
        ]
        if verdicts:
            head = [_line(["statement", "ours", "paper", "seeds", "verdict", "cause"]), _line(["---"] * 6)]
            blocks.append("\n".join([*head, *verdicts]))
        blocks += _counts(tallies(tables.values(), results), link)
    return "\n\n".join(blocks) + "\n"


def _counts(found: Mapping[str, Tally], link: str) -> list[str]:
    """How the results compare with every printed number, table by table; folded, with the sums to be seen."""
    if not found:
        return []
    total = sum(found.values(), Tally())
    words = ", ".join(f"{total[outcome]} {name}" for outcome, name in _OUTCOMES.items() if total[outcome])
    lines = [_line(["table", "printed", *_OUTCOMES.values()]), _line(["---"] * (len(_OUTCOMES) + 2))]
    for name, counts in found.items():
        numbers = (str(counts[outcome] or "") for outcome in _OUTCOMES)
        lines.append(_line([f"[{name}]({link}#{name})", str(counts.total()), *numbers]))
    summary = f"All {total.total()} printed numbers, other methods' included: {words}"
    return [f"<details><summary>{summary}</summary>", "\n".join(lines), "</details>"]


def _verdict(claim: Claim, table: Table, results: Path, link: str) -> str:
    found = judge(claim, table, read_samples(table, table.shown_profile, results)[0])
    cause = claim.cause if found.outcome in ("not reached", "contradicted") else ""
    seeds = str(found.seeds) if found.seeds else ""
    item = f"[{_escape(claim.item)}]({link}#{table.name})"
    return _line([item, found.ours, _escape(found.theirs), seeds, found.outcome, _escape(cause)])


def render(items: Iterable[Table | Figure], results: Path = RESULTS, out: Path = PAGE) -> Path:
    """Writes the page of verdicts to ``out`` and the pages it links to into the folder of the same name."""
    folder, figures = out.with_suffix(""), out.parent / "figures"
    pages = assigned(PAPERS, items)
    folder.mkdir(parents=True, exist_ok=True)
    for page, found in pages:
        _write(folder / f"{page.name}.md", page_of(page, found, results, figures, folder / f"{page.name}.md"))
    _write(out, overview(pages, results, folder.name))
    return out


def _write(path: Path, text: str) -> None:
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def _terminal_entry(entry: Entry) -> Text:
    paper = f" ({entry.paper})" if entry.paper else ""
    return Text.assemble((entry.ours, "bold" if entry.best else ""), (paper, "dim"))


def render_terminal(table: Table, results: Path = RESULTS, profile: str = "cpu") -> rich.table.Table:
    """Returns the table for the terminal, with one section per metric."""
    grids = grids_of(table, read_samples(table, profile, results)[0])
    shown = rich.table.Table(title=Text(f"{table.name}, {profile}: ours (the paper's)"), caption=Text(table.source))
    for heading in ["", *grids[0].top]:
        shown.add_column(Text(heading))
    for grid in grids:
        if grid.title:
            shown.add_row(Text(grid.title, style="italic"))
        for label, entries in zip(grid.side, grid.body, strict=True):
            shown.add_row(Text(label), *map(_terminal_entry, entries))
        shown.add_section()
    return shown
