"""The report in a real browser, on a wide screen and on a phone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from offmap.report import Report, Section, write_report
from tests.browser import launched


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.mark.parametrize("width", [1280, 390])
def test_words_that_explain_a_number_have_room(browser: Browser, digits: Section, width: int, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(path, Report(title="Digits", sections=[digits]))
    page = browser.new_page(viewport={"width": width, "height": 860})
    page.goto(path.as_uri())
    widths = page.eval_on_selector_all("td.words", "found => found.map((one) => one.getBoundingClientRect().width)")
    assert len(widths) > 5
    # In a column of its own, a phone leaves them 75 pixels.
    assert min(widths) > 250
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()
