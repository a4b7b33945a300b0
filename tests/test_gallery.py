"""The gallery: eight pages, each one picture, about ten lines, and what they cannot say."""

import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent
sys.path.insert(0, str(HERE / "tools"))

from gallery import DOCS, cell_of, pages  # noqa: E402

PAGES = pages()
MOST_LINES = 12  # besides imports


def test_there_are_eight_and_all_are_on_the_list():
    assert len(PAGES) == 8
    shown = (DOCS / "gallery" / "index.md").read_text("utf-8")
    assert set(re.findall(r"img/gallery/([\w-]+)\.png", shown)) == set(PAGES)
    assert set(re.findall(r"\]\(([\w-]+)\.md\)", shown)) == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_short_and_honest(name):
    text = PAGES[name].read_text("utf-8")
    lines = [line for line in cell_of(PAGES[name]).splitlines() if line.strip()]
    assert sum("import " not in line for line in lines) <= MOST_LINES
    assert max(map(len, lines)) <= 100
    assert "**What it cannot say.**" in text
    assert (DOCS / "img" / "gallery" / f"{name}.png").stat().st_size < 60_000


def run_page(name, capsys):
    found = {}
    exec(compile(cell_of(PAGES[name]), name, "exec"), found)
    return found, capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::forecause.ForecauseWarning")
def test_the_pages_say_what_their_lines_show(capsys):
    rain, _ = run_page("flood", capsys)
    at = rain["rain"].at
    assert round(at("river_m3s", 2)["effect"]) == 44
    assert round(at("river_m3s", 4)["effect"]) == 29
    found, said = run_page("change", capsys)
    assert set(found["told"].links["change"]) == {"vanished", "appeared"}
    assert "visits -> sales after 1 vanished" in said
    told, _ = run_page("incident", capsys)
    assert told["told"].causes["variable"].iloc[0] == "disk_wait_ms"
    economy, _ = run_page("economy", capsys)
    links = economy["run"].graph.edges.query("source != target")
    assert ("realcons", "realinv", 1) in set(
        links[["source", "target", "lag"]].itertuples(False, None)
    )
    assert set(links["grade"]) == {"tentative"}
