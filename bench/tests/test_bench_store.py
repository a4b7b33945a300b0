"""Results on disk: whole or absent, and nobody else writes there."""

import json
from dataclasses import replace

import pytest

from forecause.errors import InputError
from forecause_bench.jobs import Job, Store

JOB = Job("quick", "linear", {"nodes": 3, "max_lag": 1}, 100, 0, "pcmci+")
DONE = {"status": "done", "seconds": 1.5, "answers": []}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def test_a_stored_result_comes_back_with_its_job(store):
    assert store.load(JOB) is None
    store.save(JOB, DONE)
    found = store.load(JOB)
    assert found["seconds"] == 1.5
    assert Job(**found["job"]).key == JOB.key
    assert not list(store.folder.glob("*.partial"))


def test_suites_with_the_same_system_share_its_results(store):
    store.save(JOB, DONE)
    other = replace(JOB, suite="noise", cell="Gaussian")
    assert store.load(other)["job"]["cell"] == "Gaussian"
    assert store.load(replace(JOB, rows=200)) is None


def test_a_half_written_result_counts_as_none(store):
    store.save(JOB, DONE)
    path = store.path(JOB)
    path.write_text(path.read_text()[:40])
    assert store.load(JOB) is None
    assert not store.is_settled(JOB, 10)


def test_a_file_of_another_kind_counts_as_none(store):
    store.path(JOB).write_text(json.dumps({"status": "done"}))
    assert store.load(JOB) is None


@pytest.mark.parametrize(
    ("result", "settled"),
    [
        (DONE, True),
        ({"status": "timeout", "limit": 10}, True),
        ({"status": "timeout", "limit": 9}, False),  # more time is granted now
        ({"status": "failed", "error": "no"}, False),
        ({"status": "missing", "error": "no"}, False),  # it may have been installed since
    ],
)
def test_what_is_run_again(store, result, settled):
    store.save(JOB, result)
    assert store.is_settled(JOB, limit=10) is settled


def test_two_runs_cannot_write_into_one_folder(store):
    with (
        store.lock(),
        pytest.raises(InputError, match="Another run is writing into"),
        Store(store.folder).lock(),
    ):
        pass
    with store.lock():
        pass


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Cannot write into"):
        Store(tmp_path / "file" / "results")
