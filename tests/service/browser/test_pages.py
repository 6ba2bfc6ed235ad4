"""Pages in a real browser: texts with markup, two people, no scripts, sign-in, colours, names for screen readers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from offmap.service.review.keys import KEYS
from tests.service.browser.checks import LOW_CONTRAST, NAMELESS, OVERFLOW
from tests.service.browser.server import Server
from tests.service.browser.worlds import SCRIPT, digits_world, table_world, text_world

TOKEN = "a-token-of-some-length"
PLACES = (
    "digits",
    "intents",
    "table",
    *(f"digits/{page}" for page in ("map", "dashboard", "history", "audit", "help")),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("pages")
    worlds = digits_world(folder / "digits"), text_world(folder / "intents"), table_world(folder / "table")
    with Server(*worlds, log=folder / "log") as running:
        yield running


def test_a_text_that_holds_a_script_is_shown_and_not_run(server: Server, page: Page) -> None:
    page.goto(f"{server.address}/review/intents")
    for group in httpx.get(f"{server.address}/v1/worlds/intents/groups", timeout=60).json()["groups"]:
        page.goto(f"{server.address}/review/intents/groups/{group['id']}")
        if page.get_by_text(SCRIPT).count():
            break
    expect(page.get_by_text(SCRIPT).first).to_be_visible()
    page.keyboard.press("n")
    page.keyboard.type("<img src=x onerror=alert(1)>")
    page.keyboard.press("Enter")
    expect(page.locator("#notice")).to_contain_text("named “<img src=x onerror=alert(1)>”")
    assert "taken over" not in page.title()
    assert page.locator("#page img[src=x]").count() == 0
    page.keyboard.press("u")
    expect(page.locator("#notice")).to_contain_text("Undone")


def test_the_second_of_two_people_sees_what_the_first_did(server: Server, page: Page, context: BrowserContext) -> None:
    other = context.new_page()
    for each in (page, other):
        each.goto(f"{server.address}/review/table/groups/1")
    page.keyboard.press("n")
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    expect(page.locator("#notice")).to_contain_text("Group 1 named “7”")
    other.keyboard.press("n")
    other.keyboard.type("8")
    other.keyboard.press("Enter")
    expect(other.get_by_role("alert").filter(has_text="Nothing was done")).to_contain_text("group 1 was named")
    expect(other.locator("#title")).to_contain_text("Group 1: 7")
    # The button that goes on has the focus, so that one more key does it.
    expect(other.locator("#all-the-same")).to_be_focused()
    other.keyboard.press("Enter")
    expect(other.locator("#notice")).to_contain_text("Group 1 named “8”")


def test_without_scripts_the_forms_still_work(server: Server, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{server.address}/review/table/groups/2")
    page.locator("#name").fill("9")
    page.locator("#name").press("Enter")
    page.get_by_role("link", name="Named").click()
    page.locator(".queue a", has_text="group 2").click()
    expect(page.locator("#title")).to_contain_text("Group 2: 9")
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("link", name="Help and keys").click()
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    context.close()


def test_sign_in_with_the_token(tmp_path: Path, page: Page, context: BrowserContext) -> None:
    with Server(table_world(tmp_path / "table"), log=tmp_path / "log", token=TOKEN) as server:
        page.goto(f"{server.address}/review/table")
        expect(page).to_have_url(f"{server.address}/sign-in")
        for token in ("not the token", TOKEN):
            page.get_by_label("Token of this service").fill(token)
            page.get_by_role("button", name="Sign in").click()
            if token != TOKEN:
                expect(page.get_by_role("alert")).to_have_text("This is not the token.")
        expect(page.locator("#title")).to_contain_text("Group")
        [cookie] = [cookie for cookie in context.cookies() if cookie["name"] == "offmap_session"]
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.get_by_role("button", name="Sign out").click()
        expect(page).to_have_url(f"{server.address}/sign-in")


def test_a_group_is_opened_from_the_map(server: Server, page: Page) -> None:
    page.goto(f"{server.address}/review/digits/map")
    region = page.get_by_role("link", name="Group ").first
    number = (region.get_attribute("aria-label") or "").split(",")[0]
    # The dots are one path whose box has a hollow middle, so the click goes to the path itself.
    region.locator("path").dispatch_event("click")
    expect(page.locator("#title")).to_contain_text(number)


def test_every_key_of_the_help_has_its_place(server: Server, page: Page) -> None:
    page.goto(f"{server.address}/review/digits")
    page.keyboard.press("j")
    expect(page.locator("#title")).to_be_focused()
    present = set(page.eval_on_selector_all("[data-key]", "found => found.map((one) => one.dataset.key)"))
    wanted = {key for lines in KEYS.values() for key, _ in lines} - {"x", "w", "Esc", "1 – 6", ".", ","}
    assert wanted <= present
    assert {"1", "2"} <= present


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_are_readable_and_named(
    server: Server, browser: Browser, tmp_path: Path, scheme: Literal["light", "dark"], width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 860}, color_scheme=scheme)
    page = context.new_page()
    for place in PLACES:
        page.goto(f"{server.address}/review/{place}")
        assert page.evaluate(OVERFLOW) == [], place
        assert page.evaluate(LOW_CONTRAST) == [], place
        assert page.evaluate(NAMELESS) == [], place
        assert len(page.screenshot(path=tmp_path / "page.png")) > 10_000
    context.close()


def test_decisions_have_the_width_of_a_narrow_page(server: Server, browser: Browser) -> None:
    for group in (1, 2):
        httpx.post(f"{server.address}/v1/worlds/digits/skip", json={"group": group}, timeout=60).raise_for_status()
    context = browser.new_context(viewport={"width": 390, "height": 860})
    page = context.new_page()
    page.goto(f"{server.address}/review/digits/history")
    expect(page.get_by_text("Undo with 1 later")).to_be_visible()
    widths = page.locator(".history .words").evaluate_all("all => all.map((one) => one.clientWidth)")
    assert min(widths) > 250
    context.close()


def test_dark_and_light_can_be_chosen_and_are_remembered(server: Server, page: Page) -> None:
    page.goto(f"{server.address}/review/digits")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.keyboard.press("i")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate(background) != light
    page.goto(f"{server.address}/review/digits/history")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("i")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
