"""The pictures of the report in docs/img, made anew: python tools/screenshots.py [name ...].

Needs a chromium and playwright, as the browser tests do. Every picture stays below 250 kB.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode
from warnings import simplefilter

import forecause as fc

IMAGES = Path(__file__).parent.parent / "docs" / "img"
DESK, PHONE = (1400, 900), (380, 820)
LARGEST = 250_000  # bytes
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@dataclass(frozen=True)
class Shot:
    """A page, how it is looked at, and the state in its address."""

    run: str
    size: tuple[int, int] = DESK
    scheme: str = "light"
    state: tuple[tuple[str, str], ...] = ()


RIVER_EDGE = '["rain_mm","river_m3s",2]'
SHOTS = {
    "report-top": Shot("river"),
    "report-phone": Shot("river", PHONE),
    "report-dark": Shot("river", scheme="dark"),
    "report-edge-dark": Shot("river", scheme="dark", state=(("edge", RIVER_EDGE),)),
    "report-variable": Shot("river", state=(("focus", "river_m3s"), ("variable", "river_m3s"))),
    "report-timegraph": Shot("river", state=(("shape", "time"),)),
    "report-heatmap": Shot("river", state=(("shape", "heat"),)),
    "report-100-variables": Shot("large", (1200, 760)),
}


def river() -> fc.Discovery:
    """A daily table of a river basin."""
    return fc.discover(fc.datasets.river_basin().table, max_lag=3, forecaster="additive")


def large() -> fc.Discovery:
    """A hundred variables."""
    table = fc.simulate(nodes=100, max_lag=3, rows=3000, in_degree=1.5, seed=0).frame()
    return fc.discover(table, max_lag=3, forecaster="linear")


def main(names: list[str]) -> None:
    """Make the pictures of these names, or all."""
    from playwright.sync_api import sync_playwright

    simplefilter("ignore", fc.ForecauseWarning)
    wanted = {name: SHOTS[name] for name in names or SHOTS}
    program = next(path for name in BROWSERS if (path := shutil.which(name)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        pages = {
            run: globals()[run]().report(Path(folder) / f"{run}.html")
            for run in {shot.run for shot in wanted.values()}
        }
        browser = driver.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        for name, shot in wanted.items():
            width, height = shot.size
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=shot.scheme
            )
            state = f"#{urlencode(shot.state)}" if shot.state else ""
            page.goto(pages[shot.run].as_uri() + state)
            page.wait_for_timeout(500)
            picture = IMAGES / f"{name}.png"
            page.screenshot(path=str(picture))
            page.close()
            if picture.stat().st_size > LARGEST:
                raise SystemExit(f"{picture} is larger than {LARGEST:,} bytes.")
            sys.stdout.write(f"{picture}\n")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
