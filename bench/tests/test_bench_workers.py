"""A benchmark over Ray, and jobs whose workers die."""

from functools import partial

from dying_jobs import die_at_first
from forecause.progress import Progress
from forecause.resources.workers import Workers
from forecause_bench import runner
from forecause_bench.jobs import Store, jobs_of
from forecause_bench.run import narrowed, run_suite
from forecause_bench.suites import SUITES

SUITE = narrowed(SUITES["quick"], rows=[300], seeds=2, methods=["random"], columns=["linear"])


def test_a_benchmark_over_ray_finds_what_is_found_here_and_stores_it_as_it_comes(ray, tmp_path):
    stored = []

    class Watching(Progress):
        def step(self, what, share):
            stored.append(len(list((tmp_path / "results").glob("*.json"))))

    done = run_suite(SUITE, jobs=2, out=tmp_path, ray=ray.ray, progress=Watching())
    assert (done.ran, stored) == (2, [0, 1, 2])
    for job in jobs_of(SUITE):
        found = Store(tmp_path / "results").load(job)
        assert found["answers"] == runner.run_job(job.to_dict())["answers"]
        assert found["memory_mb"] > 0  # measured where it ran


def run_dying(tmp_path, monkeypatch, deaths):
    """A job whose process dies so many times: what is stored, and how often it was tried."""
    tries = tmp_path / "tries"
    tries.mkdir()
    monkeypatch.setattr(runner, "measured_job", partial(die_at_first, tries=tries, deaths=deaths))
    store, job, done = Store(tmp_path / "results"), jobs_of(SUITE)[0], []
    log = tmp_path / "log.txt"
    runner.run_jobs([job], store, limit=600, workers=Workers(1), log=log, done=done.append)
    assert done == [job]
    return store.load(job), len(list(tries.iterdir()))


def test_a_job_whose_process_died_is_tried_once_more(tmp_path, monkeypatch):
    found, tries = run_dying(tmp_path, monkeypatch, deaths=1)
    assert (found["status"], tries) == ("done", 2)


def test_a_job_whose_process_dies_twice_has_failed(tmp_path, monkeypatch):
    found, tries = run_dying(tmp_path, monkeypatch, deaths=2)
    assert (found["status"], tries) == ("failed", 2)
    assert "died 2 times, at last with code -9" in found["error"]
