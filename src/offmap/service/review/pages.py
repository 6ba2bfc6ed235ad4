"""What each page shows, put together from a world and rendered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from offmap.explain.explanation import Reason
from offmap.loop.auditing import new_audits
from offmap.loop.timeline import Decision, decisions
from offmap.service.review import dashboard, row_map
from offmap.service.review.cards import deck
from offmap.service.review.desk import LISTS, Desk
from offmap.service.review.form import Form
from offmap.service.review.group_page import group_content
from offmap.service.review.rendering import render
from offmap.service.review.sentences import in_words

_HISTORY, _AUDIT_ROWS, _NEAR = 100, 24, 6


@dataclass(frozen=True)
class Shell:
    """What a page knows without looking at the world.

    Args:
        world: Name of the world.
        worlds: Names of all worlds.
        csrf: Proof that a form came from this page.
        theme: "dark", "light", or "" for that of the device.
        signed_in: Whether there is a session to end.
    """

    world: str
    worlds: tuple[str, ...]
    csrf: str
    theme: str
    signed_in: bool


@dataclass(frozen=True)
class Notice:
    """What is said on top of a page.

    Args:
        done: What was just done, one sentence each.
        error: Why nothing was done.
        changes: What others did meanwhile, if that is why.
        refused: The form that was refused, whose fields keep what was typed.
    """

    done: tuple[str, ...] = ()
    error: str = ""
    changes: tuple[str, ...] = ()
    refused: Form | None = None


def queue_page(desk: Desk, shell: Shell, notice: Notice, chosen: int | None, show: str = "open", page: int = 1) -> str:
    """The queue and one of its groups."""
    content = group_content(desk, chosen, show, page)
    return _page("group.html", desk, shell, notice, "queue", content)


def map_page(desk: Desk, shell: Shell, notice: Notice) -> str:
    """The map of the rows."""
    titles = {view.id: view for view in desk.groups(*LISTS["open"])}
    return _page("map.html", desk, shell, notice, "map", {"titles": titles, "map": row_map.row_map(desk)})


def dashboard_page(desk: Desk, shell: Shell, notice: Notice) -> str:
    """Rates, p-values, drift and versions."""
    alpha, monitor = desk.world.status().alpha, desk.drift()
    content = {
        "figures": [
            dashboard.novelty_chart(desk, alpha),
            dashboard.p_value_chart(desk, alpha),
            dashboard.drift_chart(desk),
        ],
        "drift": monitor.drift if monitor is not None else None,
        "versions": dashboard.version_lines(desk),
        "latest": dashboard.latest_rows(desk),
    }
    return _page("dashboard.html", desk, shell, notice, "dashboard", content)


def history_page(desk: Desk, shell: Shell, notice: Notice) -> str:
    """What was decided, with undo."""
    lines = [(decision, in_words(desk.world, decision)) for decision in decisions(desk.world, _HISTORY)]
    return _page("history.html", desk, shell, notice, "history", {"lines": lines})


def audit_page(desk: Desk, shell: Shell, notice: Notice) -> str:
    """Random rows of the stream that wait for a label."""
    rows = desk.world.state.rows
    pending = [number for number, row in rows.items() if row.audited and row.label is None]
    content = {"deck": deck(desk, pending[:_AUDIT_ROWS], near=0), "pending": len(pending)}
    content["typed"] = dict(notice.refused.labels) if notice.refused is not None else {}
    return _page("audit.html", desk, shell, notice, "audit", content)


def row_page(desk: Desk, shell: Shell, notice: Notice, number: int, reasons: Sequence[tuple[str, Reason]]) -> str:
    """One row, and why it is unusual."""
    shown = deck(desk, [number], near=_NEAR)
    content = {"deck": shown, "card": shown.cards[0], "reasons": reasons}
    return _page("row.html", desk, shell, notice, "row", content)


def help_page(desk: Desk, shell: Shell, notice: Notice) -> str:
    """The keys, for browsers without scripts."""
    return _page("help.html", desk, shell, notice, "help", {})


def done_since(desk: Desk, before: dict[int, Decision]) -> tuple[str, ...]:
    """What changed since ``before``, in words, the last first."""
    found = []
    for decision in decisions(desk.world):
        known = before.get(decision.number)
        words = in_words(desk.world, decision)
        if known is None:
            found.append(words)
        elif known.stands != decision.stands:
            found.append(f"{'Redone' if decision.stands else 'Undone'}: {words}")
    return tuple(found)


def _page(template: str, desk: Desk, shell: Shell, notice: Notice, page: str, content: dict[str, Any]) -> str:
    """A page with what all pages have: progress, the promise, and what can be undone."""
    status, made = desk.world.status(), decisions(desk.world)
    groups, state = status.groups, desk.world.state
    handled = sum(len(g.rows) for g in state.groups.values() if g.status in ("named", "learnt", "discarded"))
    last = next((one for one in made if one.undo_steps == 1 and one.kind != "taught"), None)
    undone = next((one for one in made if one.redo_steps == 1), None)
    return render(
        template,
        shell=shell,
        notice=notice,
        page=page,
        status=status,
        revision=status.revision,
        handled=handled,
        waiting_groups=groups.get("open", 0) + groups.get("skipped", 0),
        decided=sum(decision.stands and decision.kind != "taught" for decision in made),
        read=len(desk.shown),
        labels=desk.labels(),
        can_learn=bool(status.to_learn or (state.version and new_audits(state))),
        undo=in_words(desk.world, last) if last else "",
        redo=in_words(desk.world, undone) if undone else "",
        **content,
    )
