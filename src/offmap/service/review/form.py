"""What a form of the page sends, read and checked."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from starlette.datastructures import FormData

PageName = Literal["queue", "audit", "history", "dashboard"]
PAGES: tuple[PageName, ...] = ("queue", "audit", "history", "dashboard")
_MOST = 10_000


@dataclass(frozen=True)
class Form:
    """The fields of a form.

    Args:
        act: What to do.
        revision: The revision of the world that its author saw; None to act whatever changed since.
        groups: The groups it is about.
        others: The groups that are merged into the first, or the group that rows are moved to.
        rows: Numbers of the selected rows.
        label: A class, as it was typed.
        labels: A class for each row of an audit that was given one.
        count: How many: audit rows, steps of undo or redo.
        version: A version of the model.
        following: The group to look at afterwards.
        page: The page that the form is on.
        rows_page: Which page of the group's rows it showed.
    """

    act: str
    revision: int | None = None
    groups: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    label: str = ""
    labels: tuple[tuple[int, str], ...] = ()
    count: int = 1
    version: int | None = None
    following: int | None = None
    page: PageName = "queue"
    rows_page: int = 1


def read_form(fields: FormData) -> Form:
    """The fields of a form; a number that is none is a ``ValueError`` that names its field."""
    page = str(fields.get("page", "queue"))
    return Form(
        act=str(fields.get("act", "")),
        revision=_optional(fields, "revision"),
        groups=_numbers("group", fields.getlist("group")),
        others=_numbers("other", re.split(r"[\s,;#]+", str(fields.get("other", "")).strip())),
        rows=_numbers("row", fields.getlist("row")),
        label=str(fields.get("suggestion") or fields.get("label", "")).strip(),
        labels=tuple(_labels(fields)),
        count=max(1, min(_optional(fields, "count") or 1, _MOST)),
        version=_optional(fields, "version"),
        following=_optional(fields, "following"),
        page=next((known for known in PAGES if known == page), "queue"),
        rows_page=_optional(fields, "rows_page") or 1,
    )


def _labels(fields: FormData) -> Iterable[tuple[int, str]]:
    for name, value in fields.multi_items():
        if (found := re.fullmatch(r"label-(\d{1,12})", name)) and str(value).strip():
            yield int(found[1]), str(value).strip()


def _optional(fields: FormData, name: str) -> int | None:
    found = _numbers(name, [fields.get(name, "")])
    return found[0] if found else None


def _numbers(name: str, values: Iterable[object]) -> tuple[int, ...]:
    texts = [str(value) for value in values if str(value)]
    wrong = [text for text in texts if not re.fullmatch(r"\d{1,12}", text)]
    if wrong:
        raise ValueError(f"{name} must be a number; got {wrong[0][:50]!r}")
    return tuple(dict.fromkeys(map(int, texts)))
