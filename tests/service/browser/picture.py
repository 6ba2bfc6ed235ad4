"""Takes the picture of the review page that the README shows: ``python -m tests.service.browser.picture FILE``."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser import ARGUMENTS, browser_path
from tests.service.browser.server import Server
from tests.service.browser.worlds import digits_world


def take(path: Path) -> None:
    """Serves a world of digits, names one group and takes the picture of the next."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        root = Path(folder)
        with Server(digits_world(root / "digits"), log=root / "log") as server:
            browser = playwright.chromium.launch(executable_path=browser_path(), args=ARGUMENTS)
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(f"{server.address}/review")
            page.keyboard.press("n")
            page.keyboard.type("7")
            page.keyboard.press("Enter")
            page.locator("#notice").wait_for()
            page.wait_for_load_state("networkidle")
            page.screenshot(path=path)
            browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]))
