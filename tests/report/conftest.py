"""Fixtures of the report's tests: a browser, and pages opened in it."""

import shutil
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 300_000  # milliseconds: a busy machine is no failure


@pytest.fixture(scope="session")
def browser():
    """Chromium, headless; the tests that need it are skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("no chromium was found (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=program, args=FLAGS, timeout=PATIENCE)
        yield found
        found.close()


@pytest.fixture
def open_page(browser):
    """Open a page file; what it logs and asks for is kept, and must be nothing but itself."""
    contexts, troubles = [], []

    def open_(path, hash_="", **options):
        size = options.pop("size", (1400, 1000))
        viewport = {"width": size[0], "height": size[1]}
        context = browser.new_context(viewport=viewport, **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.partition("#")[0] == Path(path).as_uri()
                else troubles.append(f"request: {request.url}")
            ),
        )
        page.goto(Path(path).as_uri() + hash_)
        page.wait_for_selector("#table thead tr", state="attached")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert troubles == []
