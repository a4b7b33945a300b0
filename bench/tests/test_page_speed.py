"""The seconds of a page."""

from forecause_bench.page_speed import table


def test_the_table_holds_the_median_of_every_figure():
    runs = [{"open": (1.0, 0.5)}, {"open": (3.0, 0.7)}, {"open": (2.0, 0.9)}]
    assert table(runs).splitlines()[-1] == "| open | 2.00 | 0.70 |"
