"""Studies of changing systems: the truth is used for scoring alone."""

from dataclasses import replace

import numpy as np
import pytest

from forecause.simulation import simulate
from forecause_bench import domains
from forecause_bench.scoring import score_against


@pytest.fixture(scope="module")
def system():
    return simulate(nodes=4, max_lag=2, rows=3000, segments=2, in_degree=2, seed=3)


def test_a_baseline_on_each_segment_beats_itself_on_the_pooled_rows(system):
    from forecause_bench.rivals import run_baseline

    (apart,) = domains.baseline_by_domain("var-fdr", system.panel, 2, 0)
    pooled = run_baseline("var-fdr", system.panel, 2, 0)
    found = [score_against(graph, system.graph)["lagged"]["f1"] for graph in (apart.graph, pooled)]
    assert found[0] > 0.9 > found[1]


def test_regimes_are_found_without_the_segments_and_measured_with_them(system):
    (answer,) = domains.unknown_regimes(system.panel, 2, 0)
    assert answer.extra["changes"] == 1
    assert answer.extra["missed"] == answer.extra["invented"] == 0
    assert answer.extra["error"] < 0.02
    assert list(answer.graph.domains) == list(system.graph.domains)
    # labels that are wrong change the measure, never the answer
    wrong = replace(system.panel, domain=np.roll(system.panel.domain, 700))
    (misled,) = domains.unknown_regimes(wrong, 2, 0)
    assert misled.graph.edges.equals(answer.graph.edges)
    assert misled.extra["missed"] > 0


def test_rows_of_a_domain_never_touch_across_a_gap(system):
    panel = replace(system.panel, domain=(np.arange(3000) // 100) % 2)
    part = domains.rows_of(panel, 1)
    assert part.rows == 1500
    assert len(part.starts) == 15
    np.testing.assert_array_equal(part.values[:100], panel.values[100:200])
