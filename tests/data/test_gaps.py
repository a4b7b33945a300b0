"""Interpolation fills short inner gaps; other short gaps get what is expected there."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from asked import closed_form_answers
from forecause.data import Panel, Windows
from forecause.data.gaps import expected, interpolated
from forecause.errors import InputError

NAN = np.nan
ONE_STRETCH = np.array([0])


def filled(column, longest, starts=ONE_STRETCH):
    values, count = interpolated(
        np.array(column, dtype=float)[:, None], np.array(starts), longest, [0]
    )
    return values[:, 0].tolist(), count


def test_short_inner_gaps_are_filled_linearly():
    assert filled([1, NAN, 3, NAN, NAN, 9], 2) == ([1, 2, 3, 5, 7, 9], 3)


def test_longer_gaps_and_edges_stay_missing():
    values, count = filled([NAN, 1, NAN, NAN, 4, NAN], 1)
    assert count == 0
    np.testing.assert_array_equal(values, [NAN, 1, NAN, NAN, 4, NAN])


@pytest.mark.parametrize("start", [2, 3])
def test_no_gap_is_filled_across_the_start_of_a_stretch(start):
    column = [1, 2, NAN, 4, 5]
    assert filled(column, 3) == ([1, 2, 3, 4, 5], 1)
    values, count = filled(column, 3, [0, start])
    assert count == 0
    np.testing.assert_array_equal(values, column)


def test_the_input_is_left_alone():
    values = np.array([[1.0], [NAN], [3.0]])
    result, _ = interpolated(values, ONE_STRETCH, 1, range(values.shape[1]))
    assert np.isnan(values[1, 0])
    assert result[1, 0] == 2
    complete = np.ones((3, 1))
    assert interpolated(complete, ONE_STRETCH, 1, range(complete.shape[1]))[0] is complete


@settings(max_examples=60)
@given(
    hnp.arrays(np.float64, (30, 2), elements=st.sampled_from([NAN, NAN, 1.0, -2.0, 7.5])),
    st.sets(st.integers(1, 29), max_size=3),
    st.integers(1, 4),
)
def test_agrees_with_pandas_stretch_by_stretch(values, inner_starts, longest):
    """pandas fills a part of a long gap, so gaps longer than `longest` are emptied again."""
    starts = np.array([0, *sorted(inner_starts)])
    expected = []
    for stretch in np.split(values, starts[1:]):
        for column in range(2):
            known = pd.Series(stretch[:, column])
            run = known.notna().cumsum()
            length = known.isna().groupby(run).transform("sum")
            line = known.interpolate(limit_area="inside")
            expected.append(line.where(known.notna() | (length <= longest)).to_numpy())
    pairs = zip(expected[::2], expected[1::2], strict=True)
    wanted = np.concatenate([np.column_stack(pair) for pair in pairs])
    result, count = interpolated(values, starts, longest, range(values.shape[1]))
    np.testing.assert_allclose(result, wanted)
    assert count == np.isnan(values).sum() - np.isnan(result).sum()


def test_the_panel_says_how_many_values_were_filled():
    column = np.arange(30.0) ** 2
    column[[4, 5, 20]] = NAN
    table = {"a": column, "b": np.sin(np.arange(30.0))}
    panel = Panel.of(table, interpolate=1, gaps="drop")
    assert panel.notes == ("1 missing value filled by interpolation.",)
    assert panel.values[20, 0] == (19**2 + 21**2) / 2
    assert np.isnan(panel.values[4:6, 0]).all()
    assert Panel.of(Panel.of(table, gaps="drop"), interpolate=2).missing_share == 0
    assert Panel.of(table).missing_share == pytest.approx(3 / 60)
    with pytest.raises(InputError, match="interpolate=-1: it should be greater than or equal to 0"):
        Panel.of(table, interpolate=-1)


# --- what is expected ---------------------------------------------------------------------------


def system(rows: int = 1500) -> np.ndarray:
    """Three variables: b follows a, c follows b, each with its own memory."""
    rng = np.random.default_rng(0)
    values = np.zeros((rows, 3))
    for t in range(1, rows):
        a, b, c = values[t - 1]
        values[t] = [0.7 * a, 0.5 * b + 0.8 * a, 0.4 * c - 0.7 * b]
        values[t] += 0.5 * rng.normal(size=3)
    return values


def with_holes(values: np.ndarray, share: float) -> np.ndarray:
    holes = np.random.default_rng(1).random(values.shape) < share
    return np.where(holes, NAN, values)


def test_filled_cells_are_about_the_regression_on_the_complete_past():
    values = system()
    holed = values.copy()
    rows = np.arange(20, 1490, 30)
    holed[rows, 2] = NAN
    same_row = values[5:-1, :2]
    shifted = np.column_stack([np.ones(1494), *(values[4 - k : -2 - k] for k in range(5))])
    design = np.column_stack([shifted, same_row])
    known = np.ones(1494, dtype=bool)
    known[rows - 5] = False
    slopes = np.linalg.lstsq(design[known], values[5:-1, 2][known], rcond=None)[0]
    filled, cells = expected(holed, np.zeros(1, np.int64), range(3))
    assert np.argwhere(cells).tolist() == [[row, 2] for row in rows]
    np.testing.assert_allclose(filled[rows, 2], design[rows - 5] @ slopes, atol=0.05)
    np.testing.assert_array_equal(filled[~cells], values[~cells])


def test_filled_cells_never_depend_on_what_comes_after():
    """Up to the fit: another future of the same kind hardly changes them."""
    holed = with_holes(system(4000), 0.05)
    start = np.zeros(1, np.int64)
    whole, cells = expected(holed, start, range(3))
    cut, _ = expected(holed[:3000], start, range(3))
    before = cells[:2999]
    difference = np.abs(whole[:2999] - cut[:2999])[before]
    assert difference.max() < 0.1 * np.nanstd(holed)


def test_long_gaps_and_other_columns_stay_missing():
    holed = system()
    holed[100:151, 0] = NAN  # one row too long
    holed[200:250, 1] = NAN
    holed[300, 2] = NAN
    filled, cells = expected(holed, np.zeros(1, np.int64), [0, 1])
    assert np.isnan(filled[100:151, 0]).all()
    assert np.isnan(filled[300, 2])
    assert np.argwhere(cells).tolist() == [[row, 1] for row in range(200, 250)]


def test_a_gap_of_most_variables_is_filled_only_if_it_is_short():
    holed = system()
    holed[100:106, :2] = NAN
    holed[200:205, :2] = NAN
    _, cells = expected(holed, np.zeros(1, np.int64), range(3))
    assert np.flatnonzero(cells.any(1)).tolist() == list(range(200, 205))


def test_a_column_that_is_mostly_missing_keeps_its_longer_gaps():
    holed = system()
    holed[np.arange(1500) % 10 > 2, 0] = NAN
    _, cells = expected(holed, np.zeros(1, np.int64), range(3))
    assert cells is None


def test_a_run_is_measured_within_its_stretch():
    holed = system()
    holed[78:132, 0] = NAN
    _, cells = expected(holed, np.array([0, 101]), range(3))
    assert np.flatnonzero(cells[:, 0]).tolist() == list(range(78, 132))


def test_the_panel_remembers_and_says_what_was_filled():
    holed = with_holes(system(), 0.02)
    panel = Panel.of(holed)
    count = int(np.isnan(holed).sum())
    assert not np.isnan(panel.values).any()
    np.testing.assert_array_equal(panel.filled, np.isnan(holed))
    assert panel.notes[-1].startswith(f"{count} missing values (1.9% of all)")
    assert panel.changes[-1].count == count
    dropped = Panel.of(holed, gaps="drop")
    assert panel.fingerprint() == dropped.fingerprint()
    assert panel.missing_share == pytest.approx(dropped.missing_share)
    assert Windows.of(panel, 5).lost_share == 0
    np.testing.assert_allclose(Windows.of(panel, 1).filled_share, panel.filled[1:].mean(0))
    np.testing.assert_array_equal(
        Windows.of(panel, 1).observed(2).rows, np.flatnonzero(~panel.filled[1:, 2]) + 1
    )


def test_filled_targets_are_not_tested():
    """The p-values of a target are those of its observed rows."""
    panel = Panel.of(with_holes(system(800), 0.15))
    windows = Windows.of(panel, 2)
    tests = closed_form_answers(windows)
    for target, name in enumerate(panel.variables):
        own = closed_form_answers(
            replace(windows.observed(target), panel=replace(panel, filled=None))
        )
        np.testing.assert_allclose(
            tests["p_value"].sel(target=name), own["p_value"].sel(target=name)
        )


def test_a_gap_choice_that_is_none_is_refused():
    with pytest.raises(InputError, match="gaps='leave': it should be 'fill' or 'drop'"):
        Panel.of(system(), gaps="leave")
