"""Interpolation fills short inner gaps and nothing else."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from forecause.data import Panel
from forecause.data.gaps import interpolated
from forecause.errors import InputError

NAN = np.nan
ONE_STRETCH = np.array([0])


def filled(column, longest, starts=ONE_STRETCH):
    values, count = interpolated(np.array(column, dtype=float)[:, None], np.array(starts), longest)
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
    result, _ = interpolated(values, ONE_STRETCH, 1)
    assert np.isnan(values[1, 0])
    assert result[1, 0] == 2
    complete = np.ones((3, 1))
    assert interpolated(complete, ONE_STRETCH, 1)[0] is complete


@settings(max_examples=60, deadline=None)
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
    result, count = interpolated(values, starts, longest)
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
    with pytest.raises(InputError, match="0 rows or more, found -1"):
        Panel.of(table, interpolate=-1)
