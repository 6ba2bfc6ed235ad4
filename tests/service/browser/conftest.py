"""Pages of the service in a real browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser import launched

# Machines that run tests may be slow and busy.
_MILLISECONDS = 60_000
expect.set_options(timeout=_MILLISECONDS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


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
