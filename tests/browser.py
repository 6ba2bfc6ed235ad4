"""A real browser: the system's Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def browser_path() -> str | None:
    """The browser of this machine."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


def launched() -> Iterator[Browser]:
    """Yields the browser and closes it; without one the test is skipped, or fails where one is required."""
    path = browser_path()
    if path is None:
        advice = "there is no Chromium on this machine; make browser gets one"
        if os.environ.get("OFFMAP_REQUIRE_BROWSER") == "1":
            pytest.fail(advice)
        pytest.skip(advice)
    with sync_playwright() as playwright:
        yield (browser := playwright.chromium.launch(executable_path=path, args=ARGUMENTS))
        browser.close()
