"""Panel: what it refuses, and what it tells about itself."""

import numpy as np
import pytest

from forecause.data import Panel
from forecause.data.scratch import PIECE
from forecause.errors import InputError


def noise(rows=50, columns=3, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, columns))


def panel(values, names="abcdefgh", **more):
    return Panel.from_arrays([np.asarray(values)], list(names[: np.shape(values)[1]]), **more)


def with_value(value, row=3, column=1):
    values = noise()
    values[row, column] = value
    return values


def with_column(column, place=1):
    values = noise()
    values[:, place] = column
    return values


NAN = np.nan


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (with_value(np.inf), "Column 'b' holds an infinite value in row 4"),
        (with_value(-np.inf), "Column 'b' holds an infinite value in row 4"),
        (with_column(NAN), "Column 'b' holds no value at all"),
        (with_column(2.5), "Column 'b' is constant (2.5)"),
        (with_column([NAN, *[2.5] * 49]), "Column 'b' is constant (2.5)"),
        (with_column(noise()[:, 0]), "Columns 'a' and 'b' hold the same values"),
        (with_value(1e200), "beyond 1e+100"),
        (noise(3, 4), "more columns (4) than rows (3)"),
        (noise(0, 3), "empty: 0 rows"),
        (noise(5, 0), "0 numeric columns"),
    ],
)
def test_values_that_cannot_be_used_are_refused(values, said):
    with pytest.raises(InputError) as caught:
        panel(values)
    assert said in str(caught.value)


def test_columns_that_differ_in_one_value_are_not_the_same():
    values = with_column(noise()[:, 0])
    values[20, 1] = values[21, 1]
    assert panel(values).rows == 50


def test_an_infinite_value_is_found_in_any_chunk():
    values = np.tile(noise(2, 2), (PIECE // 32 + 500, 1))
    values[-2, 0] = np.inf
    with pytest.raises(InputError, match=f"row {len(values) - 1};"):
        panel(values)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("a", "b", "a"), "['a'] appear more than once"),
        (("a", "b"), "3 columns but 2 names"),
        (("a", "b", "c\0"), "null character"),
    ],
)
def test_names_that_do_not_fit_are_refused(names, said):
    with pytest.raises(InputError) as caught:
        Panel.from_arrays([noise()], names)
    assert said in str(caught.value)


def test_a_single_array_is_not_copied():
    values = noise().astype(np.float32)
    assert panel(values).values is values


def test_arrays_are_stacked_as_separate_series():
    made = Panel.from_arrays([noise(20), noise(30, seed=1)], "abc", ["first", "second"])
    assert made.starts.tolist() == [0, 20]
    assert np.bincount(made.series).tolist() == [20, 30]
    assert made.series_names == ("first", "second")


def test_missing_share():
    values = noise()
    values[:15, 0] = NAN
    assert panel(values).missing_share == pytest.approx(0.1)


def test_the_fingerprint_tells_data_apart_and_nothing_else():
    values = noise()
    same = panel(values).fingerprint()
    assert panel(values.copy()).fingerprint() == same
    assert panel(np.asfortranarray(values)).fingerprint() == same
    others = [
        panel(with_value(0.0)),
        panel(values, "xyz"),
        Panel.from_arrays([values[:20], values[20:]], "abc", ["s", "t"]),
        Panel.of(
            {"a": values[:, 0], "b": values[:, 1], "c": values[:, 2], "d": [0] * 50}, domain="d"
        ),
    ]
    assert same not in {other.fingerprint() for other in others}
