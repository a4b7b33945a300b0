import numpy as np
import pytest
import torch

from forecause.graph.axes import by_lag, by_step, labelled


def test_the_last_step_is_lag_1():
    by_hand = np.zeros((2, 3, 2))  # (target, step, source)
    by_hand[1, 2, 0] = 5.0  # the latest value of source 0
    by_hand[0, 0, 1] = 7.0  # the oldest of source 1
    found = by_lag(by_hand)
    assert found.shape == (2, 2, 3)
    assert found[1, 0, 0] == 5.0  # lag 1
    assert found[0, 1, 2] == 7.0  # lag 3


@pytest.mark.parametrize("shape", [(3, 4, 2), (4, 2), (5, 3, 4, 2)])
def test_there_and_back_again_is_the_same(shape):
    values = np.random.default_rng(0).normal(size=shape)
    assert (by_step(by_lag(values)) == values).all()
    assert (by_lag(torch.from_numpy(values)) == by_lag(values)).all()


def test_labelled_values_are_found_by_name():
    values = np.arange(12.0).reshape(2, 2, 3)
    found = labelled(values, ["a", "b"])
    assert found.sel(target="b", source="a", lag=3) == values[1, 0, 2]
    assert labelled(values, ["a", "b"], first_lag=0)["lag"].values.tolist() == [0, 1, 2]
