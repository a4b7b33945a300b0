"""Designs hold the right lags, and moments are those of the design."""

import numpy as np
import pytest

from forecause.errors import InputError
from forecause.regression import design
from forecause.regression.design import Design, Moments


def test_lag_one_comes_first_and_no_window_crosses_series(make_panel):
    panel = make_panel(rows=(40, 30))
    made = Design.of(panel, 3)
    scaled = (panel.values - panel.values.mean(0)) / panel.values.std(0)
    assert made.past.shape == (37 + 27, 3, 4)
    assert made.past.dtype == np.float64
    np.testing.assert_allclose(made.target[0], scaled[3])
    np.testing.assert_allclose(made.past[0, 0], scaled[2])
    np.testing.assert_allclose(made.past[0, 2], scaled[0])
    np.testing.assert_allclose(made.target[37], scaled[43])


@pytest.mark.parametrize("held_at_once", [1, 100, 20_000_000])
def test_moments_are_those_of_the_centred_design_whatever_the_chunk(
    held_at_once, make_panel, monkeypatch
):
    monkeypatch.setattr(design, "CHUNK_VALUES", held_at_once)
    panel = make_panel(rows=(60, 30))
    made = Design.of(panel, 2)
    columns = np.hstack([made.target, made.past.reshape(len(made.past), -1)])
    expected = np.cov(columns.T, bias=True) * len(columns)
    moments = Moments.of(panel, 2)
    assert moments.windows == len(columns)
    np.testing.assert_allclose(moments.cross, expected, atol=1e-10)


def test_too_few_rows_are_refused(make_panel):
    with pytest.raises(InputError, match="Too few rows"):
        Design.of(make_panel(rows=(15,)), 2)
