"""The families without links, and the systems that should be doubted."""

import numpy as np
import pytest

from forecause_bench import nulls
from forecause_bench.jobs import jobs_of
from forecause_bench.runner import run_job
from forecause_bench.unlinked import FAMILIES


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_without_links_has_none_between_variables(name):
    panel, truth = nulls.family(300, 1, 5, name, links=False)
    assert (truth.edges["source"] == truth.edges["target"]).all()
    assert panel.rows == 300
    again, _ = nulls.family(300, 1, 5, name, links=False)
    np.testing.assert_array_equal(panel.values, again.values)


def test_with_links_there_are_some_between_variables():
    _, truth = nulls.family(300, 2, 5, "shared-day", links=True)
    assert (truth.edges["source"] != truth.edges["target"]).sum() == 4


@pytest.mark.parametrize("kind", ["regime_change", "drifting_cycle", "near_copy", "long_memory"])
def test_a_broken_system_is_doubted_and_a_sound_one_is_not(kind):
    broken, _ = getattr(nulls, kind)(1000, 3, 5)
    fine, _ = nulls.sound(1000, 3, 5)
    assert nulls.doubted(broken, 5, 0)[0].extra == {"doubted": 1.0}
    assert nulls.doubted(fine, 5, 0)[0].extra == {"doubted": 0.0}


def test_a_job_of_the_suite_runs():
    job = next(job for job in jobs_of(nulls.NULLS) if job.method == "var-fdr")
    assert run_job(job.to_dict())["status"] == "done"
