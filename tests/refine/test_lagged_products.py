"""Sums of products of lagged values."""

import numpy as np
import pytest

from forecause.data import Windows
from forecause.refine import candidates
from forecause.refine.candidates import LaggedProducts, lagged_values


@pytest.mark.parametrize("held_at_once", [1, 100, 20_000_000])
def test_products_are_those_of_the_centred_values_whatever_the_chunk(
    held_at_once, make_panel, monkeypatch
):
    monkeypatch.setattr(candidates, "CHUNK_VALUES", held_at_once)
    panel = make_panel(rows=(60, 30))
    windows = Windows.of(panel, 2)
    columns = lagged_values(windows, windows.rows).reshape(len(windows), -1)
    expected = np.cov(columns.T, bias=True) * len(columns)
    products = LaggedProducts.of(panel, 2)
    assert products.windows == len(columns)
    np.testing.assert_allclose(products.cross, expected, atol=1e-10)
