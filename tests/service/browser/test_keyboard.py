"""The whole loop by keyboard: name, merge, undo after a crash, learn, and see the new class predicted."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.service.browser.server import Server
from tests.service.browser.worlds import STREAM, digits_split, digits_world


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("keyboard")
    with Server(digits_world(folder / "digits"), log=folder / "log") as running:
        yield running


def groups(server: Server, **query: str) -> list[dict[str, Any]]:
    return httpx.get(f"{server.address}/v1/worlds/digits/groups", params=query, timeout=60).json()["groups"]


def pure_groups(server: Server) -> dict[int, list[int]]:
    """Groups that are clearly of an unknown digit, by digit, in the order of the queue."""
    truth = digits_split().y_test
    found: dict[int, list[int]] = {}
    for group in groups(server):
        digit, count = Counter(int(truth[row]) for row in group["rows"]).most_common(1)[0]
        if digit > 6 and count >= 0.8 * group["size"]:
            found.setdefault(digit, []).append(group["id"])
    return found


def go_to(page: Page, group: int) -> None:
    """Presses j until the group is there."""
    title = page.locator("#title")
    while not title.inner_text().startswith(f"Group {group} "):
        before = title.inner_text()
        page.keyboard.press("j")
        expect(title).not_to_have_text(before)


def test_the_loop_by_keyboard(server: Server, page: Page) -> None:
    by_digit = pure_groups(server)
    (first, *more), digit = max((ids, digit) for digit, ids in by_digit.items() if len(ids) > 1)
    other_digit = next(other for other in by_digit if other != digit)
    second = by_digit[other_digit][0]

    page.goto(f"{server.address}/review")
    title, notice = page.locator("#title"), page.locator("#notice")

    # Name two groups; after each the next group is shown and has the focus.
    for group, name in sorted([(first, digit), (second, other_digit)], key=lambda each: order(server, each[0])):
        go_to(page, group)
        page.keyboard.press("n")
        expect(page.locator("#name")).to_be_focused()
        page.keyboard.type(str(name))
        page.keyboard.press("Enter")
        expect(notice).to_contain_text(f"Group {group} named “{name}”")
        expect(title).to_be_focused()
        expect(page.locator("#live")).to_contain_text(f"Group {group} named")
    assert {group["id"]: group["name"] for group in groups(server, status="named")} == {
        first: digit,
        second: other_digit,
    }

    # Merge another group of the same digit into a named one.
    page.goto(f"{server.address}/review/digits/groups/{first}")
    size = groups_size(server, first)
    page.keyboard.press("m")
    expect(page.locator("#other")).to_be_focused()
    page.keyboard.type(str(more[0]))
    page.keyboard.press("Enter")
    expect(notice).to_contain_text(f"Group {more[0]} merged into group {first}")
    assert groups_size(server, first) > size

    # What was acknowledged survives a crash, and can still be undone and redone.
    server.kill()
    server.start()
    page.goto(f"{server.address}/review/digits")
    page.keyboard.press("u")
    expect(notice).to_contain_text(f"Undone: Group {more[0]} merged")
    expect(title).to_contain_text(f"Group {first}")
    assert groups_size(server, first) == size
    page.keyboard.press("r")
    expect(notice).to_contain_text(f"Redone: Group {more[0]} merged")

    # Learn, and see the new digit predicted in rows that come later.
    page.keyboard.press("l")
    expect(notice).to_contain_text("Version 2 made from")
    split = digits_split()
    later = [row for row in range(STREAM, len(split.y_test)) if split.y_test[row] == digit][:20]
    rows = {"rows": split.X_test[later].tolist(), "ids": later}
    httpx.post(f"{server.address}/v1/worlds/digits/observe", json=rows, timeout=60).raise_for_status()
    page.keyboard.press("b")
    expect(title).to_have_text("Dashboard")
    predicted = page.locator("section[aria-labelledby=latest] tbody td:nth-child(2) b").all_inner_texts()
    assert predicted.count(str(digit)) >= 8


def order(server: Server, group: int) -> int:
    return [found["id"] for found in groups(server)].index(group)


def groups_size(server: Server, group: int) -> int:
    return next(found["size"] for found in groups(server, status="named") if found["id"] == group)


def test_rows_are_selected_moved_and_labelled_by_keyboard(server: Server, page: Page) -> None:
    page.goto(f"{server.address}/review/digits")
    [here, there] = [group["id"] for group in groups(server)[:2]]
    page.keyboard.press("x")
    for _ in range(3):
        page.keyboard.press("x")
    expect(page.locator("#selected")).to_have_text("3 rows selected")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    expect(page.locator("#selected")).to_have_text("2 rows selected")
    page.keyboard.press("v")
    page.keyboard.type(str(there))
    page.keyboard.press("Enter")
    expect(page.locator("#notice")).to_contain_text(f"moved to group {there}. And 1 more")
    expect(page.locator("#title")).to_contain_text(f"Group {here}")
    page.keyboard.press("e")
    page.keyboard.press("c")
    page.keyboard.type("8")
    page.keyboard.press("Enter")
    expect(page.locator("#notice")).to_contain_text("labelled “8”")


def test_skip_split_discard_and_undo_of_an_earlier_act(server: Server, page: Page) -> None:
    page.goto(f"{server.address}/review/digits")
    notice = page.locator("#notice")
    for key, words in (("s", "skipped"), ("t", "split into"), ("d", "discarded")):
        page.keyboard.press(key)
        expect(notice).to_contain_text(words)
    page.keyboard.press("h")
    page.get_by_role("button", name="skipped: it waits at the end of the queue, and 2 later").first.click()
    expect(notice).to_contain_text("Undone: ")
    expect(page.locator(".history li.undone")).to_have_count(3)


def test_keys_that_are_pressed_faster_than_the_service_answers_are_not_lost(server: Server, page: Page) -> None:
    page.goto(f"{server.address}/review/digits")
    [first, second, third, *_] = [group["id"] for group in groups(server)]
    for _ in range(3):
        page.keyboard.press("s")
    expect(page.locator("#notice")).to_contain_text(f"Group {third} skipped")
    assert [group["id"] for group in groups(server) if group["status"] == "skipped"] == [first, second, third]
    for _ in range(3):
        page.keyboard.press("u")
    expect(page.locator("#notice")).to_contain_text(f"Undone: Group {first} skipped")


def test_keys_typed_ahead_into_a_field_are_its_text(server: Server, page: Page) -> None:
    page.goto(f"{server.address}/review/digits")
    title, name = page.locator("#title"), page.locator("#name")
    first, before = title.inner_text(), decisions(server)
    held: list[Route] = []
    page.route("**/groups/*", lambda route: held.append(route))
    for key in ("j", "n", "d", "o", "t", "Backspace", "Shift", "G", "Enter"):
        page.keyboard.press(key)
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    expect(title).not_to_have_text(first)
    expect(name).to_be_focused()
    expect(name).to_have_value("doG")
    assert decisions(server) == before


@pytest.mark.parametrize("status", [409, 422])
def test_keys_typed_ahead_of_a_refusal_are_dropped(server: Server, page: Page, status: int) -> None:
    page.goto(f"{server.address}/review/digits")
    title, content, before = page.locator("#title"), page.content(), decisions(server)
    first = title.inner_text()
    held: list[Route] = []
    page.route("**/act", lambda route: held.append(route))
    for key in ("s", "d", "j"):
        page.keyboard.press(key)
    while not held:
        page.wait_for_timeout(20)
    held[0].fulfill(status=status, body=content, content_type="text/html")
    expect(page.locator("#page")).not_to_have_attribute("aria-busy", "true")
    page.wait_for_timeout(100)
    expect(title).to_have_text(first)
    assert (len(held), decisions(server)) == (1, before)


def decisions(server: Server) -> int:
    return httpx.get(f"{server.address}/v1/worlds/digits", timeout=60).json()["revision"]


def test_why_a_row_is_unusual_is_one_key_away(server: Server, page: Page) -> None:
    page.goto(f"{server.address}/review/digits")
    group = page.locator("#title").inner_text().split(" ")[1]
    page.keyboard.press("x")
    page.keyboard.press("w")
    expect(page.get_by_role("heading", name="What makes it unusual")).to_be_visible()
    expect(page.locator(".reasons li").first).to_contain_text("%")
    expect(page.locator(".near img")).to_have_count(6)
    page.keyboard.press("w")
    expect(page.locator("#title")).to_contain_text(f"Group {group} ")


def test_help_opens_lists_the_keys_and_turns_single_keys_off(server: Server, page: Page) -> None:
    page.goto(f"{server.address}/review/digits")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.get_by_label("Single keys act").uncheck()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).not_to_be_visible()
    page.locator("#title").focus()
    page.keyboard.press("p")
    page.keyboard.press("?")
    expect(page.locator("#title")).to_contain_text("Group")
    expect(page.locator("#help")).to_be_visible()
