"""Systems that trees can learn, and how their drivers are scored."""

import pytest

from forecause_bench.foreign_models import DRIVEN, scores, stairs


def test_a_system_has_two_drivers_for_each_driven_variable():
    table, truth = stairs(400, 1)
    again, _ = stairs(400, 1)
    assert table.equals(again)
    assert len(truth) == 2 * DRIVEN
    for source, target, lag in truth:
        assert source != target
        assert table[target].std() > 0.6  # more than its own noise
        assert 1 <= lag <= 2


def test_scores_are_those_of_sets():
    a, b, c = ("a", "b", 1), ("b", "c", 1), ("c", "a", 2)
    found = scores({a, b}, {a, c})
    assert found == {"F1": pytest.approx(0.5), "recall": 0.5, "false": 0.5}
    assert scores(set(), {a})["false"] == 0.0
