"""Claims about the hard systems."""

import numpy as np
import pytest

from forecause_bench.hard_systems import FAMILIES, HARD, hard
from forecause_bench.jobs import jobs_of
from forecause_bench.runner import system_of


@pytest.mark.parametrize("family", FAMILIES)
def test_a_system_is_finite_and_the_same_for_the_same_seed(family):
    first, second = (hard(200, 3, 3, family) for _ in range(2))
    assert np.isfinite(first[0].values).all()
    np.testing.assert_array_equal(first[0].values, second[0].values)
    assert first[1] == second[1]


def test_three_parents_explain_a_product_and_no_parent_alone_does():
    panel, truth = hard(4000, 0, 3, "product-of-three")
    target = truth.edges.query("source != target")["target"].iloc[0]
    own = truth.edges.query("target == @target and source != target")
    columns = list(panel.variables)
    y = panel.values[3:, columns.index(target)]
    parents = [
        panel.values[3 - e.lag : len(panel.values) - e.lag, columns.index(e.source)]
        for e in own.itertuples()
    ]
    scaled = [np.clip(one / one.std(), -2, 2) for one in parents]
    assert len(scaled) == 3
    assert abs(np.corrcoef(np.prod(scaled, axis=0), y)[0, 1]) > 0.3
    assert max(abs(np.corrcoef(one, y)[0, 1]) for one in scaled) < 0.15


def test_a_job_of_the_suite_makes_its_system():
    panel, truth = system_of(jobs_of(HARD)[0].to_dict())
    assert len(panel.variables) == 10
    assert truth.max_lag == 3
