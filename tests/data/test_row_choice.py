"""Rows to be explained: a column or a condition, against pandas."""

import numpy as np
import pandas as pd
import pytest

from forecause import InputError, Panel
from forecause.data.windows import Windows

RNG = np.random.default_rng(0)
ROWS = 120
FRAME = pd.DataFrame(
    {
        "a": RNG.normal(size=ROWS),
        "b": RNG.normal(size=ROWS),
        "season": np.repeat(["winter", "spring", "summer"], 40),
        "month": np.repeat(np.arange(1, 13), 10),
    }
)


@pytest.mark.parametrize(
    "condition",
    [
        "season == 'winter'",
        "season != 'winter' and a > 0",
        "not (season == 'winter' or month >= 10)",
        "month in (1, 2, 12)",
        "month not in [3, 4]",
        "-1 < a <= 0.5",
        "a < b",
    ],
)
def test_a_condition_chooses_the_rows_that_pandas_chooses(condition):
    panel = Panel.of(FRAME, rows=condition)
    wanted = FRAME.eval(condition).to_numpy()
    assert panel.explained.tolist() == wanted.tolist()
    assert panel.variables == ("a", "b", "month")
    assert panel.notes[-1] == f"{wanted.sum()} of 120 rows are explained: {condition}."


def test_the_window_may_reach_outside_but_not_its_target():
    panel = Panel.of(FRAME, rows="season == 'spring'")
    assert Windows.of(panel, 3).rows.tolist() == list(range(40, 80))
    assert Windows.of(panel, 3).lost_share == 0
    first = Panel.of(FRAME, rows="season == 'winter'")
    assert Windows.of(first, 3).rows.tolist() == list(range(3, 40))


@pytest.mark.parametrize("column", [[True, False], [1, 0], ["true", "False"], [1.0, None]])
def test_a_column_of_truth_values_is_no_variable(column):
    panel = Panel.of(FRAME.assign(use=column * 60), rows="use")
    assert panel.explained.tolist() == [True, False] * 60
    assert "use" not in panel.variables


def test_rows_chosen_are_another_data_set():
    some, all_rows = Panel.of(FRAME, rows="a > 0"), Panel.of(FRAME)
    assert some.fingerprint() != all_rows.fingerprint()


def test_a_missing_cell_is_never_chosen():
    frame = FRAME.assign(a=[None, *FRAME["a"][1:]])
    assert not Panel.of(frame, rows="a < 99").explained[0]
    assert not Panel.of(frame, rows="a != 99").explained[0]


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("seasn == 'winter'", "name 'seasn', but the columns are 'a', 'b', 'season', 'month'"),
        ("season", "must hold true and false or 1 and 0, found 'spring'"),
        ("a +", "expected a condition such as"),
        ("a", "must hold true and false"),
        ("month in 3", "Expected a list after 'in'"),
        ("__import__('os').system('true')", "expected a condition such as"),
        ("a.real > 0", "expected a condition such as"),
    ],
)
def test_what_is_no_condition_is_refused(condition, said):
    with pytest.raises(InputError, match=said):
        Panel.of(FRAME, rows=condition)
