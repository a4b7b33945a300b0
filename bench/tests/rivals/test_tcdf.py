"""TCDF: which sources are attended, and the delays it reads."""

import numpy as np
import pytest
import torch

from forecause.data import Panel
from forecause_bench.rivals import tcdf as module
from forecause_bench.rivals.tcdf import Networks, attended, missed_when_shuffled, tcdf


@pytest.mark.parametrize(
    ("attention", "expected"),
    [
        ([0.9, 1.2, 1.01, 0.5], {1, 2}),  # few variables: all above the start
        ([1.0, 1.0, 1.0, 1.0], set()),
        ([2.0, 1.8, 1.2, 1.1, 1.0, 0.9, 0.8, 0.7], {0, 1}),  # widest gap after the second
        ([3.0, 1.2, 1.1, 0.9, 0.9, 0.9, 0.9, 0.9], {0, 1, 2}),  # a gap after the first is not one
        ([1.4, 1.3, 1.2, 1.1, 1.0, 0.1, 0.0, 0.0], {0, 1}),  # nor one in the lower half
        ([1.5, 0.9, 0.5, 0.5, 0.5, 0.4], {0}),  # nor one below the start
    ],
)
def test_sources_above_the_widest_gap_are_attended(attention, expected):
    assert set(attended(np.array(attention))) == expected


def test_only_a_source_the_forecast_rests_on_is_missed_when_shuffled():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 400, 2, generator=generator)
    networks = Networks.started(3, 2, torch.arange(3), generator)
    networks.mix.zero_()
    networks.mix[1, 0] = 1.0  # the forecast of variable 0 rests on variable 1 alone
    truth = networks.contributions(x).sum(0) + networks.shift
    first_loss, last_loss = truth.var(0), torch.zeros(3)
    missed = missed_when_shuffled(networks, x, truth, first_loss, last_loss, generator)
    assert missed[:, 0].tolist() == [False, True, False]


def test_the_delay_is_found_and_only_one_per_pair(make_panel, edges_of):
    weights = {("a", "a", 1): 0.7, ("a", "b", 3): 0.9, ("c", "c", 2): 0.8}
    found = edges_of(tcdf(make_panel(weights, "abc", rows=(800,)), 4, 0))
    assert found == set(weights)


@pytest.mark.usefixtures("quick")
def test_an_effect_at_lag_zero_is_left_out(edges_of):
    values = np.random.default_rng(0).normal(size=(600, 2))
    values[:, 1] += 2 * values[:, 0]
    assert edges_of(tcdf(Panel.from_arrays([values], ["a", "b"]), 2, 0)) == set()


@pytest.mark.usefixtures("quick")
def test_blocks_of_targets_find_the_same_edges(easy_panel, easy_truth, f1_of, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_VALUES", 1)
    assert f1_of(tcdf(easy_panel, 2, 0), easy_truth) >= 0.75
