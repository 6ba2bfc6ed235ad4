"""What the buttons of the page do to a world."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from offmap.errors import short_repr
from offmap.loop import OpenWorld
from offmap.loop.state import Label
from offmap.loop.timeline import decisions
from offmap.service.review.form import Form

T = TypeVar("T")


@dataclass(frozen=True)
class Act:
    """One kind of act.

    Args:
        run: Does it, and returns the group to look at afterwards; None for the next of the queue.
        about: Which part of the world must not have changed since its author looked: the groups it names, all that
            people decided, or nothing.
    """

    run: Callable[[OpenWorld, Form], int | None]
    about: str = "groups"


def label_of(world: OpenWorld, text: str) -> Label:
    """A class as it was typed: a number where the known classes are numbers."""
    if not text:
        raise ValueError("the name is empty; type one, or choose a suggestion")
    if world.classifier.classes_.dtype.kind in "UO":
        return text
    # Python would read "1_0" and digits of other scripts as numbers too.
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        raise ValueError(f"the classes of this world are numbers; {short_repr(text)} is none")
    return int(text)


def _groups(form: Form) -> tuple[int, ...]:
    if not form.groups:
        raise ValueError("choose a group first")
    return form.groups


def _each(world: OpenWorld, form: Form, items: Iterable[T], step: Callable[[T, int | None], None]) -> None:
    """Does one step per item, each upon the revision that the step before it made."""
    expected = form.revision
    for item in items:
        step(item, expected)
        expected = world.revision


def _name(world: OpenWorld, form: Form) -> int | None:
    label = label_of(world, form.label)
    _each(world, form, _groups(form), lambda group, expected: world.name(group, label, expected=expected))
    return form.following


def _skip(world: OpenWorld, form: Form) -> int | None:
    _each(world, form, _groups(form), lambda group, expected: world.skip(group, expected=expected))
    return form.following


def _discard(world: OpenWorld, form: Form) -> int | None:
    _each(world, form, _groups(form), lambda group, expected: world.discard(group, expected=expected))
    return form.following


def _merge(world: OpenWorld, form: Form) -> int | None:
    kept, *others = (*_groups(form), *form.others)
    if not others:
        raise ValueError("say which group to merge with: its number, or several")
    _each(world, form, others, lambda other, expected: world.merge(kept, other, expected=expected))
    return kept


def _split(world: OpenWorld, form: Form) -> int | None:
    return world.split(_groups(form)[0], expected=form.revision)[0]


def _selected(form: Form) -> tuple[int, ...]:
    if not form.rows:
        raise ValueError("select rows first")
    return form.rows


def _move(world: OpenWorld, form: Form) -> int | None:
    if len(form.others) != 1:
        raise ValueError("say which group the rows belong to: one number")
    rows, target = [_row(world, number) for number in _selected(form)], form.others[0]
    _each(world, form, rows, lambda row, expected: world.move(row, target, expected=expected))
    return form.groups[0] if form.groups else None


def _label(world: OpenWorld, form: Form) -> int | None:
    label = label_of(world, form.label)
    rows = [_row(world, number) for number in _selected(form)]
    _each(world, form, rows, lambda row, expected: world.label(row, label, expected=expected))
    return form.groups[0] if form.groups else None


def _label_audit(world: OpenWorld, form: Form) -> int | None:
    if not form.labels:
        raise ValueError("no row was given a class; type at least one")
    # Each label stands for itself: one that does not fit must not cost the others.
    refused = [why for number, text in form.labels if (why := _refused_label(world, number, text))]
    if refused:
        raise ValueError("; ".join(refused))
    return None


def _refused_label(world: OpenWorld, number: int, text: str) -> str:
    """Labels one row, or says why it cannot; a row that has this label already is no trouble."""
    row = world.state.rows.get(number)
    name = number if row is None else row.id
    try:
        label = label_of(world, text)
        if row is None or row.label is None:
            world.label(_row(world, number), label)
        elif row.label != label:
            return f"row {name} is labelled {short_repr(row.label)} already, so {short_repr(text)} was not saved"
    except ValueError as error:
        return f"row {name}: {error}"
    return ""


def _row(world: OpenWorld, number: int) -> Label:
    if number not in world.state.rows:
        raise ValueError(f"there is no row {number}")
    return world.state.rows[number].id


def _audit(world: OpenWorld, form: Form) -> int | None:
    pending = sum(row.audited and row.label is None for row in world.state.rows.values())
    if len(world.audit(pending + form.count)) == pending:
        raise ValueError("every row that came since the last version is an audit row already; wait for more rows")
    return None


def _learn(world: OpenWorld, form: Form) -> int | None:
    world.learn(expected=form.revision)
    return None


def _undo(world: OpenWorld, form: Form) -> int | None:
    return _repeat(world, world.undo, form.count, "undo")


def _redo(world: OpenWorld, form: Form) -> int | None:
    return _repeat(world, world.redo, form.count, "redo")


def _repeat(world: OpenWorld, step: Callable[[], str | None], count: int, name: str) -> int | None:
    """Undoes or redoes some decisions, and returns the group that the last of them was about."""
    found: int | None = None
    for done in range(count):
        before = {decision.number: decision for decision in decisions(world)}
        # A lesson with labelled rows is no decision of a reviewer.
        taught = name == "undo" and any(one.undo_steps == 1 and one.kind == "taught" for one in before.values())
        if taught or step() is None:
            if not done:
                raise ValueError(f"there is nothing to {name}")
            break
        changed = [now for now in decisions(world) if now.stands != before[now.number].stands]
        found = changed[0].content.get("group", found) if changed else found
    return found


def _rollback(world: OpenWorld, form: Form) -> int | None:
    if form.version is None:
        raise ValueError("choose a version")
    world.rollback(form.version, expected=form.revision)
    return None


ACTS = {
    "name": Act(_name),
    "merge": Act(_merge),
    "split": Act(_split),
    "skip": Act(_skip),
    "discard": Act(_discard),
    "move": Act(_move),
    "label": Act(_label),
    "audit": Act(_audit, about="nothing"),
    "label-audit": Act(_label_audit, about="nothing"),
    "learn": Act(_learn, about="decisions"),
    "undo": Act(_undo, about="decisions"),
    "redo": Act(_redo, about="decisions"),
    "rollback": Act(_rollback, about="decisions"),
}
