import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.config.spec import Settings
from forecause_bench.sensitivity import Answer, Table, moved, reads, summarise, trials

READ, UNREAD = ("edges", "usual_fdr_few"), ("events", "level")


@pytest.fixture(scope="module")
def table():
    system = fc.simulate(nodes=3, max_lag=2, rows=200, seed=1, in_degree=1, max_in_degree=1)
    return Table("small", system.frame(), frozenset())


def test_thresholds_of_questions_that_are_not_asked_are_not_read(table):
    seen = reads(table.frame)
    assert READ in seen
    assert UNREAD not in seen
    assert "__getattribute__" not in vars(Settings)


def test_what_is_read_is_tried_both_ways_and_the_rest_is_only_noted(table):
    tried, noted = trials(table, [READ, UNREAD], set())
    assert tried.keys() == {"table", "threshold", "halved", "doubled"}
    assert noted == {"table": "small", "threshold": "events.level"}
    assert list(trials(table, [READ], {"small/edges.usual_fdr_few"})) == []


def test_a_threshold_that_forbids_all_edges_is_seen(table, monkeypatch):
    monkeypatch.setattr("forecause_bench.sensitivity.FACTORS", {"halved": 1e-200})
    (line,) = trials(table, [READ], set())
    edges = fc.discover(table.frame, max_lag=3).graph.edges
    assert line["halved"]["edges"] == len(edges) > 0


def test_moved_keeps_the_kind_of_a_number():
    assert moved(3, 0.5) == 2
    assert moved(1, 0.5) == 1
    assert moved(0.3, 2.0) == pytest.approx(0.6)
    assert moved((4.0, 1.0), 0.5) == (2.0, 0.5)


def test_f1_counts_edges_of_either_side():
    true = frozenset({("a", "b", 1), ("b", "c", 1)})
    found = Answer(frozenset({("a", "b", 1)}), frozenset(), frozenset())
    assert found.f1(true) == pytest.approx(2 / 3)
    assert found.f1(frozenset()) == 0.0
    assert Answer(frozenset(), frozenset(), frozenset()).f1(frozenset()) == 1.0


def test_the_table_tells_what_matters_first():
    change = {"edges": 2, "grades": 2, "findings": 0, "f1": -0.1}
    still = {"edges": 0, "grades": 0, "findings": 0, "f1": 0.0}
    lines = [
        {"table": "one", "threshold": "edges.firm_q", "halved": still, "doubled": still},
        {"table": "one", "threshold": "edges.usual_fdr", "halved": change, "doubled": still},
        {"table": "two", "threshold": "edges.usual_fdr"},
    ]
    found = summarise(lines)
    assert found["threshold"].tolist() == ["edges.usual_fdr", "edges.firm_q"]
    assert found["read in"].tolist() == ["1 of 2", "1 of 1"]
    assert found["edges, halved"].tolist() == [1, 0]
    assert found["F1, halved"].tolist() == ["-0.100", "+0.000"]
    assert isinstance(found, pd.DataFrame)
    assert np.all(found["edges, doubled"] == 0)
