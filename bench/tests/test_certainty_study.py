"""The study of the certainty."""

import json

from forecause_bench import certainty
from forecause_bench.certainty import System


def edge(sure, true, grade="firm", own=False):
    return {"certainty": sure, "grade": grade, "true": true, "own": own}


def test_the_area_is_the_share_of_pairs_in_the_right_order():
    edges = [edge(0.9, True), edge(0.4, True), edge(0.6, False), edge(0.1, False)]
    assert certainty.auroc(edges) == 0.75
    assert certainty.auroc(edges[:2]) is None


def test_the_table_counts_false_edges_by_grade():
    found = {
        "simulated linear 1": [edge(0.99, True), edge(0.995, False)],
        "unlinked ar-95 1": [edge(0.3, False, "tentative"), edge(0.99, True, own=True)],
    }
    text = certainty.table(found, "command")
    assert "| all edges | 0.500 | 33.3% (1 of 3) | 0.0% (0 of 0) | 100.0% (1 of 1) |" in text
    assert "| unlinked | 1.000 | 0.0% (0 of 1) |" in text


def test_a_system_is_run_once_and_its_edges_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(certainty, "SIMULATED_ROWS", (300,))
    system = System("simulated", "linear", 1)
    first = certainty.measure([system], tmp_path)
    assert {"certainty", "grade", "true", "own"} == set(first[system.key][0])
    assert any(found["true"] for found in first[system.key])
    monkeypatch.setattr(certainty, "edges_of", None)
    assert certainty.measure([system], tmp_path) == json.loads(json.dumps(first))
