"""A real browser: the system's Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Machines that run tests may be slow and busy.
_MILLISECONDS = 60_000
expect.set_options(timeout=_MILLISECONDS)


def browser_path() -> str | None:
    """The browser of this machine."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = browser_path()
    if path is None:
        advice = "there is no Chromium on this machine; make browser gets one"
        if os.environ.get("OFFMAP_REQUIRE_BROWSER") == "1":
            pytest.fail(advice)
        pytest.skip(advice)
    with sync_playwright() as playwright:
        yield (launched := playwright.chromium.launch(executable_path=path, args=ARGUMENTS))
        launched.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
    made.set_default_timeout(_MILLISECONDS)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page on which every complaint of the browser, such as a violated security policy, is a failure."""
    complaints: list[str] = []
    made = context.new_page()
    made.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    made.on("pageerror", lambda error: complaints.append(str(error)))
    yield made
    # A status above 399 is reported on the console too; tests that provoke one look at the page itself.
    assert [text for text in complaints if "status of 4" not in text] == []
