"""The families without links, and the systems that should be doubted."""

import numpy as np
import pytest

from forecause.config import Config
from forecause.graph.lagged import LaggedGraph
from forecause.seasons.course import time_taken_out
from forecause_bench import nulls
from forecause_bench.jobs import jobs_of
from forecause_bench.runner import run_job
from forecause_bench.scoring import score_answer
from forecause_bench.unlinked import FAMILIES


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_without_links_has_none_between_variables(name):
    panel, truth = nulls.family(300, 4, 5, name, links=False)
    assert (truth.edges["source"] == truth.edges["target"]).all()
    assert panel.rows == 300
    again, _ = nulls.family(300, 4, 5, name, links=False)
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


def test_tables_grow_with_the_seed_up_to_the_size_asked_for():
    sizes = [nulls.family(2000, seed, 5, "white-noise", links=False)[0].rows for seed in range(5)]
    assert sizes == [300, 500, 1000, 1500, 2000]


def test_an_undisturbed_family_has_the_same_links_between_variables():
    graphs = [nulls.family(400, 4, 5, "ar-99", True, disturbed)[1] for disturbed in (True, False)]
    first, second = (g.edges[g.edges["source"] != g.edges["target"]] for g in graphs)
    assert first.values.tolist() == second.values.tolist()


def test_a_false_link_counts_as_a_share_of_all_links():
    truth = LaggedGraph.from_edges(["a", "b"], 1, [("a", "a", 1), ("b", "b", 1)])
    found = LaggedGraph.from_edges(["a", "b"], 1, [("a", "a", 1), ("b", "b", 1), ("a", "b", 1)])
    assert score_answer(found, truth)["metrics"]["lagged"]["false_cross"] == pytest.approx(1 / 3)


def test_level_shifts_that_all_variables_share_are_taken_out_of_a_short_table():
    panel, _ = nulls.family(2000, 3005, 5, "level-shifts", links=False)
    course = time_taken_out(panel, Config.of()).course
    assert panel.rows == 300
    assert len(course.terms[0].shifts) >= 2
    walks, _ = nulls.family(2000, 3005, 5, "random-walks", links=False)
    assert time_taken_out(walks, Config.of()) is walks
