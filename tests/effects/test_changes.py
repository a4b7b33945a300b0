"""Changes between periods: what changed is found and named, what did not is left alone."""

import numpy as np
import pandas as pd
import pytest

import forecause as fc

HALF = 600


def frame(seed=0):
    """a -> b changes its sign, b -> c vanishes, d -> c appears, d gets louder."""
    noise = np.random.default_rng(seed).normal(size=(2 * HALF, 4))
    noise[HALF:, 3] *= 2.0
    values = noise.copy()
    for row in range(1, 2 * HALF):
        late = row >= HALF
        before = values[row - 1]
        values[row, 0] += 0.5 * before[0]
        values[row, 1] += (-0.6 if late else 0.6) * before[0]
        values[row, 2] += 0.3 * before[3] if late else 0.6 * before[1]
    index = pd.date_range("2026-01-01", periods=2 * HALF, freq="D")
    return pd.DataFrame(values, columns=list("abcd"), index=index)


@pytest.fixture(scope="module")
def run():
    with pytest.warns(fc.ForecauseWarning):  # it says that what drives b changes
        return fc.discover(frame(), max_lag=2, forecaster="linear", season="none")


def test_links_that_changed_are_found_and_named(run):
    told = run.changed(("2026-01-01", "2027-08-23"), ("2027-08-24", None))
    found = {(r.source, r.target, r.lag): r.change for r in told.links.itertuples()}
    assert found == {
        ("a", "b", 1): "sign",
        ("b", "c", 1): "vanished",
        ("d", "c", 1): "appeared",
    }
    assert told.noise["variable"].tolist() == ["d"]
    assert told.noise["after"].iloc[0] == pytest.approx(2.0, rel=0.1)
    assert "changed its sign" in told.sentence
    told.plot()


def test_periods_are_named_in_several_ways_and_tables_stand_for_themselves(run):
    data = frame()
    by_rows = run.changed((0, HALF - 1), slice(HALF, None)).links
    by_text = run.changed("..2027-08-23", "2027-08-24..").links
    by_table = run.changed(data.iloc[:HALF], data.iloc[HALF:]).links
    for other in (by_text, by_table):
        pd.testing.assert_frame_equal(by_rows, other, rtol=1e-4)


def test_equal_periods_do_not_differ_even_if_the_noise_does():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(1000, 4))
    values[500:] *= 1.7
    run = fc.discover(pd.DataFrame(values), max_lag=2, forecaster="linear", season="none")
    told = run.changed((0, 499), (500, 999))
    assert told.links.empty
    assert len(told.noise) == 4


@pytest.mark.parametrize(
    ("periods", "said"),
    [
        (((0, 5), (6, 1000)), "Too few rows"),
        ((("2031-01-01", None), (0, 500)), "No row lies between"),
        (((0, 500), (1, 2, 3)), "two|Expected"),
        (((0, 500), (400, 900)), "share 101 rows"),
        ((None, (0, 500)), "Name both periods"),
    ],
)
def test_periods_that_cannot_be_compared_are_refused(run, periods, said):
    with pytest.raises(fc.InputError, match=said):
        run.changed(*periods)


def test_rows_of_another_step_and_columns_that_stand_still_are_refused(run):
    data = frame()
    with pytest.raises(fc.InputError, match="every day in one, every 2 days in the other"):
        run.changed(data.iloc[:HALF], data.iloc[HALF::2])
    with pytest.raises(fc.InputError, match="no 'a' that varies"):
        run.changed(data.iloc[:HALF], data.iloc[HALF:].assign(a=1.0))
    with pytest.raises(fc.InputError, match="in another order"):
        run.changed(
            run, fc.discover(data[list("dcba")].iloc[:HALF], max_lag=2, forecaster="linear")
        )


def test_a_column_in_another_unit_is_named(run):
    data = frame()
    told = run.changed(data.iloc[:HALF], data.iloc[HALF:].assign(b=lambda d: 1000 * d["b"]))
    assert "b varies far more" in told.caveat
