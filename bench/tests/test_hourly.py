"""The hourly tables, and that the default finds their links."""

import numpy as np
import pytest

import forecause as fc
from forecause_bench.hourly import KINDS, LINKS, hourly


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_has_six_numbers_and_three_links(kind):
    panel, truth = hourly(400, 4, 5, kind)
    assert len(panel.variables) == 6
    assert (truth.edges["source"] != truth.edges["target"]).sum() == 3
    again, _ = hourly(400, 4, 5, kind)
    np.testing.assert_array_equal(panel.values, again.values)


def test_the_default_finds_the_three_links_of_an_hourly_table_and_at_most_one_other():
    panel, _ = hourly(1000, 1, 5, "own-phases")
    edges = fc.discover(panel, max_lag=5).graph.edges
    between = edges[edges["source"] != edges["target"]]
    found = set(between[["source", "target", "lag"]].itertuples(index=False, name=None))
    true = {link[:3] for link in LINKS}
    assert true <= found
    assert len(found - true) <= 1
