"""The page of all results agrees with the tables that it lists."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent.parent
sys.path.insert(0, str(HERE / "tools"))

from benchmark_index import BENCHMARKS, groups, page, table_of  # noqa: E402


def test_every_table_is_listed_once():
    listed = [name for names in groups().values() for name in names]
    assert sorted(listed) == sorted(path.parent.name for path in BENCHMARKS.glob("*/table.md"))


def test_every_line_of_the_page_names_a_command():
    lines = [line for line in page().splitlines() if line.startswith("| [")]
    assert len(lines) == len(list(BENCHMARKS.glob("*/table.md")))
    assert all(re.search(r"\| (`[^`]+`|named beside each figure) \|$", line) for line in lines)


def test_what_is_won_and_lost_is_told_as_in_the_table():
    assert "loses 6, wins 9." in table_of("few-rows")
    (line,) = (one for one in page().splitlines() if "(few-rows/table.md)" in one)
    assert "| loses 6, wins 9 | `forecause bench few-rows --methods" in line
