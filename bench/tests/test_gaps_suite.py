"""The systems with missing cells."""

import numpy as np
import pytest

from forecause_bench.gaps import with_holes


@pytest.mark.parametrize("burst", [1, 3, 12])
def test_a_share_of_the_cells_is_missing_and_the_rest_is_as_it_was(burst):
    complete, truth = with_holes(2000, 0, 5, 0.0, 1)
    holed, same = with_holes(2000, 0, 5, 0.2, burst)
    assert holed.missing_share == pytest.approx(0.2, abs=0.02)
    known = ~holed.filled & np.isfinite(holed.values)
    np.testing.assert_array_equal(holed.values[known], complete.values[known])
    assert truth.edges.equals(same.edges)
