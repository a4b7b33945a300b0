"""The studies of what a run answers: their systems hold the truth that they are scored by."""

import numpy as np
import pandas as pd

from forecause_bench import changes, incidents, questions, responses


def test_an_incident_changes_its_root_and_nothing_else():
    system = incidents.System(3)
    roots, changed = system.incident("broken link", np.random.default_rng(0))
    touched = np.argwhere(changed.weights != system.weights)
    assert touched[:, 1].tolist() == roots
    assert (changed.shift == 0).all()
    roots, changed = system.incident("two roots", np.random.default_rng(1))
    assert sorted(np.flatnonzero(changed.shift)) == sorted(roots)


def test_naive_rules_rank_the_variable_that_moved_first():
    rng = np.random.default_rng(0)
    calm, event = rng.normal(size=(300, 4)), rng.normal(size=(30, 4))
    event[:, 2] += 5
    assert incidents.naive_z(calm, event).argmax() == 2
    assert incidents.own_past(calm, event).argmax() == 2
    assert incidents.hits(["x1", "x2"], {"x2"}) == {"first": 0.0, "three": 1.0}


def test_true_responses_of_a_linear_system_are_its_coefficients():
    made = responses.simulate(rows=300, seed=1, mechanism="linear", **responses.SYSTEM)
    told = responses.true_response(made, 0, 2.0, 0)
    edges = made.graph.edges.query("source == 'X1' and lag == 1")
    for target, score in zip(edges["target"], edges["score"], strict=True):
        assert np.isclose(abs(told[0, made.variables.index(target)]), 2 * score)


def test_false_changes_are_those_that_did_not_happen():
    truth = {("x1", "x2", 1): "vanished", ("x3", "x4", 2): "sign"}
    told = changes._scored({("x1", "x2", 1), ("x5", "x6", 1)}, truth)
    assert told == {"vanished": 1.0, "sign": 0.0, "any false": 1.0, "false": 1.0}


def test_a_page_shows_numbers_with_three_digits():
    table = pd.DataFrame({"rule": ["own past"], "first": [0.66666]})
    assert questions.markdown(table)[-1] == "| own past | 0.667 |"
