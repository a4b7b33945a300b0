"""How long the page of a run takes to open and to answer, in a headless Chromium.

    forecause simulate --nodes 1000 --max-lag 2 --rows 5000 --seed 7 --out system
    forecause discover system/data.csv --max-lag 2 --out run
    python -m forecause_bench.page_speed run/report.html --pictures .

Seconds by the clock and processor seconds of the process that shows the page; the median of several
openings. A reaction ends with the next picture on the screen.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SIZES = {"desktop": (1400, 1000), "phone": (380, 800)}
SHOWN = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime / 1000"
VARIABLE = "forecause.data.graph.variables[0]"
WHERE = f"forecause.where({{kind: 'variable', key: {VARIABLE}}})"
Times = dict[str, tuple[float, float]]


def _reactions(page: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What a reader does, one after the other."""
    name = page.evaluate(VARIABLE)
    page.locator("#canvas").scroll_into_view_if_needed()
    x, y = page.evaluate(WHERE)
    yield "move over a variable", lambda: page.mouse.move(x, y)
    yield "click on a variable", lambda: page.mouse.click(x, y)
    yield "type into the search", lambda: page.fill("#find", name)
    yield "focus on what was found", lambda: page.press("#find", "Enter")
    yield "end the focus", lambda: page.click("#unfocus")
    yield "switch to the time graph", lambda: page.click("#shapes [data-value=time]")
    yield "switch to the heatmap", lambda: page.click("#shapes [data-value=heat]")
    yield "switch to the summary", lambda: page.click("#shapes [data-value=summary]")
    yield "zoom in", lambda: page.click("#zoom-in")
    yield "filter the table", lambda: page.fill("#filter", name)


class Watch:
    """The clock, and the processor time of the processes that show pages."""

    def __init__(self, browser: Any) -> None:
        self.session = browser.new_browser_cdp_session()

    def _worked(self) -> float:
        every = self.session.send("SystemInfo.getProcessInfo")["processInfo"]
        return float(sum(one["cpuTime"] for one in every if one["type"] == "renderer"))

    @contextmanager
    def timing(self, times: Times, name: str) -> Iterator[None]:
        """Note how long the block takes."""
        worked, start = self._worked(), time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        times[name] = (seconds, self._worked() - worked)


def opened(browser: Any, path: Path, size: tuple[int, int], picture: Path | None = None) -> Times:
    """Open the page once, use it, and tell the seconds of everything."""
    times: Times = {}
    watch = Watch(browser)
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.evaluate("1")  # its process has started
    with watch.timing(times, "open"):
        page.goto(path.resolve().as_uri(), wait_until="load")
        page.evaluate(SHOWN)
    paint = float(page.evaluate(PAINT))
    times["first paint"] = (paint, paint)
    if picture is not None:
        page.screenshot(path=picture)
    for name, act in _reactions(page):
        with watch.timing(times, name):
            act()
            page.evaluate(SHOWN)
    page.close()
    return times


def table(runs: Sequence[Times]) -> str:
    """The median of every figure."""
    lines = ["| | seconds | processor seconds |", "|---|---:|---:|"]
    for name in runs[0]:
        clock, worked = (median(run[name][place] for run in runs) for place in (0, 1))
        lines.append(f"| {name} | {clock:.2f} | {worked:.2f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m forecause_bench.page_speed")
    parser.add_argument("page", type=Path, help="report.html of a run")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--pictures", type=Path, help="folder for a picture of every size")
    asked = parser.parse_args(arguments)
    from playwright.sync_api import sync_playwright

    program = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        for name, size in SIZES.items():
            picture = asked.pictures / f"{name}.png" if asked.pictures else None
            runs = [opened(browser, asked.page, size, picture) for _ in range(asked.times)]
            sys.stdout.write(f"{name}, {size[0]} x {size[1]}\n\n{table(runs)}\n\n")
        browser.close()


if __name__ == "__main__":
    main()
