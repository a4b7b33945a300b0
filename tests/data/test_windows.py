"""Windows: every complete window once, in order, never across a break, without a copy."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecause.data import Panel, Scale, Windows
from forecause.data import panel as standardised_table
from forecause.data import windows as windows_module
from forecause.errors import InputError


def noise(rows, columns=3, seed=0):
    return np.random.default_rng(seed).normal(2.0, 3.0, size=(rows, columns))


def names(columns):
    return [f"x{i}" for i in range(columns)]


def panel(*arrays, **more):
    return Panel.from_arrays(arrays, names(arrays[0].shape[1]), **more)


def by_hand(made, max_lag):
    """Target rows of complete windows, the slow and obvious way."""
    stretch = np.searchsorted(made.starts, np.arange(made.rows), side="right")
    return [
        t
        for t in range(max_lag, made.rows)
        if stretch[t - max_lag] == stretch[t]
        and not np.isnan(made.values[t - max_lag : t + 1]).any()
    ]


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    max_lag=st.integers(1, 4),
    missing=st.lists(st.tuples(st.integers(0, 59), st.integers(0, 2)), max_size=6),
)
def test_windows_are_those_found_by_hand(lengths, max_lag, missing):
    arrays = [noise(60), *(noise(n, seed=n) for n in lengths)]
    for row, column in missing:
        arrays[0][row, column] = np.nan
    made = panel(*arrays)
    windows = Windows.of(made, max_lag)
    assert windows.rows.tolist() == by_hand(made, max_lag)
    possible = sum(max(len(array) - max_lag, 0) for array in arrays)
    assert windows.lost_share == pytest.approx(1 - len(windows) / possible)


def test_lost_share_counts_missing_values_and_gaps():
    values = noise(100)
    values[50, 1] = np.nan
    made = panel(values)
    assert Windows.of(made, 4).lost_share == pytest.approx(5 / 96)  # rows 50..54 as targets
    time = np.r_[0:30, 40:110].astype(float)
    gapped = Panel.of({"time": time, "a": noise(100)[:, 0], "b": noise(100)[:, 1]})
    assert Windows.of(gapped, 4).lost_share == pytest.approx(4 / 96)


def test_lost_share_is_that_of_the_panel_whatever_part_is_looked_at():
    values = noise(100)
    values[50, 1] = np.nan
    windows = Windows.of(panel(values), 4)
    assert windows.split(0.2)[1].lost_share == windows.lost_share


def test_a_window_holds_the_past_in_order_and_the_target_last():
    values = noise(60)
    windows = Windows.of(panel(values), 3)
    drawn = windows.draw(np.array([0, 5])).rows
    scaled = (values - values.mean(0)) / values.std(0)
    assert drawn.shape == (2, 4, 3)
    assert drawn.dtype == np.float32
    np.testing.assert_allclose(drawn[0], scaled[0:4], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(drawn[1], scaled[5:9], rtol=1e-5, atol=1e-6)


def test_batches_are_all_windows_once():
    windows = Windows.of(panel(noise(60)), 3)
    together = np.concatenate([batch.rows for batch in windows.batches(16)])
    assert np.array_equal(together, windows.draw(np.arange(len(windows))).rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_memory_layout_draws_the_same_bits(dtype):
    values = noise(60).astype(dtype)
    wide = np.zeros((60, 5), dtype)
    wide[:, 1:4] = values
    chosen = np.array([3, 9, 3])
    drawn = [
        Windows.of(panel(array), 3).draw(chosen).rows
        for array in (values, np.asfortranarray(values), wide[:, 1:4], values.copy())
    ]
    assert all(np.array_equal(drawn[0], other) for other in drawn[1:])


def test_scale_leaves_missing_values_out():
    values = noise(500)
    values[::7, 1] = np.nan
    scale = panel(values).standardised.scale
    np.testing.assert_allclose(scale.mean, np.nanmean(values, 0))
    np.testing.assert_allclose(scale.sd, np.nanstd(values, 0))


def test_scale_of_float32_is_computed_in_float64():
    values = (noise(5000) + 10_000).astype(np.float32)
    scale = panel(values).standardised.scale
    np.testing.assert_allclose(scale.sd, values.astype(np.float64).std(0), rtol=1e-9)


@pytest.mark.parametrize("layout", ["C", "F"])
def test_a_mapped_file_is_never_copied(tmp_path, layout):
    shape = (100_000, 100)  # 40 MB, nearly all of it a hole in the file
    path = tmp_path / "large.npy"
    mapped = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.float32, shape=shape, fortran_order=layout == "F"
    )
    mapped[0] = np.arange(1, 101)
    mapped.flush()
    size = mapped.nbytes
    windows = Windows.of(Panel.of(path), 5)
    assert windows.panel.values.dtype == np.float32
    assert not windows.panel.values.flags.owndata
    chosen = np.arange(0, 64_000, 1000)
    windows.draw(chosen)
    tracemalloc.start()
    drawn = windows.draw(chosen).rows
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    Windows.of(Panel.of(path), 5)
    _, whole = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert drawn.shape == (64, 6, 100)
    assert peak < 2_000_000
    assert whole < 0.9 * size  # checks and moments look at one piece of about 8 MB at a time


def test_too_few_rows_are_refused():
    with pytest.raises(InputError) as caught:
        Windows.of(panel(noise(24)), 5)
    assert "only 19 windows" in str(caught.value)
    assert "longest unbroken stretch has 24 rows" in str(caught.value)
    assert len(Windows.of(panel(noise(25)), 5)) == 20
    with pytest.raises(InputError, match="at least 1, found 0"):
        Windows.of(panel(noise(24)), 0)


def test_the_end_of_every_series_and_domain_is_held_out():
    domain = np.r_[[0] * 30, [1] * 20, [0] * 40]
    arrays = noise(90)
    made = Panel(
        arrays,
        tuple(names(3)),
        np.array([0, 50]),
        np.r_[[0] * 50, [1] * 40],
        ("s", "t"),
        domain,
        ("calm", "storm"),
    )
    windows = Windows.of(made, 2)
    train, late = windows.split(0.25)
    assert sorted([*train.rows, *late.rows]) == windows.rows.tolist()
    for series, part in ((0, 0), (0, 1), (1, 0)):
        rows = [r for r in windows.rows if (made.series[r], domain[r]) == (series, part)]
        held = [r for r in late.rows if r in rows]
        assert held == rows[len(rows) - len(rows) // 4 :]


def test_something_is_held_out_of_many_series_of_one_window():
    made = panel(*(noise(6, seed=i) for i in range(30)))
    train, late = Windows.of(made, 5).split(0.2)
    assert (len(train), len(late)) == (24, 6)


def test_a_sample_is_in_time_order_and_repeatable():
    windows = Windows.of(panel(noise(200)), 2)
    some = windows.sample(20, np.random.default_rng(0))
    assert len(some) == 20
    assert (np.diff(some.rows) > 0).all()
    assert np.array_equal(some.rows, windows.sample(20, np.random.default_rng(0)).rows)
    assert windows.sample(10_000, np.random.default_rng(0)) is windows


@settings(max_examples=60)
@given(
    chosen=st.lists(st.integers(0, 295), min_size=1, max_size=40),
    dtype=st.sampled_from([np.float32, np.float64]),
    layout=st.sampled_from(["C", "F"]),
)
def test_near_and_distant_windows_are_standardised_alike(chosen, dtype, layout):
    values = np.asarray(noise(300), dtype=dtype, order=layout)
    windows = Windows.of(panel(values), 4)
    drawn = windows.draw(np.array(chosen)).rows
    for window, place in zip(drawn, chosen, strict=True):
        rows = values[place : place + 5].astype(np.float64)
        expected = ((rows - windows.scale.mean) / windows.scale.sd).astype(np.float32)
        np.testing.assert_array_equal(window, expected)


def test_no_window_is_a_batch_of_none():
    windows = Windows.of(panel(noise(50)), 2)
    assert windows.draw(np.array([], dtype=np.int64)).rows.shape == (0, 3, 3)


def test_the_table_is_standardised_once_for_all_windows_made_of_it(monkeypatch):
    standardised = []
    scaled = standardised_table._scaled

    def counted(values, scale):
        standardised.append(len(values))
        return scaled(values, scale)

    monkeypatch.setattr(standardised_table, "_scaled", counted)
    made = panel(noise(300))
    windows = Windows.of(made, 3)
    early, late = replace(windows, panel=replace(made, notes=("said",))).split(0.2)
    for part in (windows, early, late, windows.thin(50), Windows.of(made, 5)):
        assert len(part.whole()) == sum(len(batch) for batch in part.batches(7)) == len(part)
    assert standardised == [300]


def test_neighbouring_windows_are_views_of_one_table_and_cannot_be_changed():
    windows = Windows.of(panel(noise(300)), 3)
    whole, batch = windows.whole(), next(windows.batches(50))
    assert np.shares_memory(whole.past, batch.past)
    assert np.shares_memory(whole.past, windows.split(0.2)[0].whole().past)
    with pytest.raises(ValueError, match="read-only"):
        batch.past[0] = 0
    np.testing.assert_array_equal(whole.rows[50:100], windows.draw(np.arange(50, 100)).rows)


def test_another_scale_or_other_values_are_standardised_anew():
    made = panel(noise(300))
    windows = Windows.of(made, 3)
    plain = replace(windows, scale=Scale(np.zeros(3), np.ones(3)))
    np.testing.assert_array_equal(plain.whole().target, made.values[3:].astype(np.float32))
    doubled = replace(windows, panel=replace(made, values=2 * made.values))
    assert not np.allclose(doubled.whole().target, windows.whole().target)


def test_a_table_too_large_to_be_kept_is_drawn_alike(monkeypatch):
    made = panel(noise(300), noise(40, seed=3))
    expected = Windows.of(made, 3).whole().rows
    monkeypatch.setattr(standardised_table, "MOST_STANDARDISED", 10)
    monkeypatch.setattr(windows_module, "MOST_HELD", 10)
    streamed = Windows.of(panel(noise(300), noise(40, seed=3)), 3)
    assert streamed.table.whole is None
    parts = np.concatenate([batch.rows for batch in streamed.batches(16)])
    np.testing.assert_array_equal(parts, expected)
    np.testing.assert_array_equal(streamed.whole().rows, expected)


def test_the_first_row_behind_the_window_is_a_possible_one():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=["a", "b"])
    table["wanted"] = np.arange(30) < 25  # rows 2 to 24 have two rows before them
    windows = Windows.of(Panel.of(table, rows="wanted"), 2)
    assert windows.rows.tolist() == [*range(2, 25)]
    assert windows.lost_share == 0.0


def test_calm_windows_are_those_without_the_largest_inputs_in_units_of_their_column() -> None:
    rng = np.random.default_rng(0)
    own = Windows.of(Panel.of(rng.standard_t(3, size=(500, 2)) * [1.0, 100.0]), 2)
    past = own.whole().past
    largest = (np.abs(past) / np.median(np.abs(past), axis=(0, 1))).max((1, 2))
    kept = np.isin(own.rows, own.calm.rows)
    assert kept.sum() == 1 + int(0.8 * (len(own) - 1))
    assert largest[kept].max() < largest[~kept].min()


def test_neighbours_among_windows_are_a_view_of_what_was_cut_for_all() -> None:
    own = Windows.of(Panel.of(np.random.default_rng(0).normal(size=(60, 2))), 3)
    part = own.at(np.arange(5, 30))
    assert np.shares_memory(part.whole().past, own.whole().past)
    np.testing.assert_array_equal(part.whole().past, own.draw(np.arange(5, 30)).past)
    np.testing.assert_array_equal(part.at(np.arange(2, 4)).whole().target, own.whole().target[7:9])
    apart = own.at(np.array([3, 9]))
    np.testing.assert_array_equal(apart.whole().past, own.whole().past[[3, 9]])
