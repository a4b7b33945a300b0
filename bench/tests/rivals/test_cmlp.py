"""Neural Granger: the proximal step, exact zeros and nonlinear effects."""

import numpy as np
import pytest
import torch

from forecause.data import Panel
from forecause_bench.rivals import cmlp as module
from forecause_bench.rivals.cmlp import Networks, cmlp, fit, noise_penalty
from forecause_bench.rivals.var_fdr import var_fdr


@pytest.fixture
def problem():
    """Inputs of which only the first drives the first of two targets, and networks to fit."""
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(500, 6, generator=rng)
    y = torch.randn(500, 2, generator=rng)
    y[:, 0] += 2 * x[:, 0].abs() - 1.6
    return Networks.started(6, 2, rng), x, y


def test_fitting_lowers_every_targets_objective_and_zeroes_the_other_inputs(problem):
    networks, x, y = problem
    penalty = noise_penalty(networks, x, y, candidates=12)
    fitted = fit(networks, x, y, penalty)
    before = networks.squared_error(x, y) + penalty * networks.norms().sum(1)
    after = fitted.squared_error(x, y) + penalty * fitted.norms().sum(1)
    assert (after < before).all()
    assert (fitted.norms()[0] != 0).tolist() == [True] + [False] * 5


def test_steps_that_are_far_too_long_are_shortened_until_they_help(problem):
    networks, x, y = problem
    penalty = noise_penalty(networks, x, y, candidates=12)
    before = networks.squared_error(x, y) + penalty * networks.norms().sum(1)
    slopes = module.slopes_of(networks, x, y)
    long = torch.full((2,), 50.0)
    _, after = module.line_search(networks, slopes, long, [before], x, y, penalty)
    assert (after < before).all()


def test_the_fit_is_stationary(problem):
    """Zero weights have a gradient below the penalty, others one that balances it."""
    networks, x, y = problem
    penalty = noise_penalty(networks, x, y, candidates=12)
    fitted = fit(fit(networks, x, y, penalty), x, y, penalty)
    first = fitted.first.clone().requires_grad_()
    loss = Networks(first, *fitted.parts()[1:]).squared_error(x, y).sum()
    (slope,) = torch.autograd.grad(loss, [first])
    norms = fitted.norms()
    assert (slope.norm(dim=2)[norms == 0] <= penalty.max() * 1.01).all()
    kept = slope[norms > 0] + penalty[0] * fitted.first[norms > 0] / norms[norms > 0][:, None]
    assert kept.norm(dim=1).max() < 0.05 * penalty[0]


def test_a_larger_penalty_keeps_fewer_inputs(problem):
    networks, x, y = problem
    kept = [int((fit(networks, x, y, torch.full((2,), p)).norms() > 0).sum()) for p in (0, 0.1, 9)]
    assert kept[0] == 12
    assert kept[0] > kept[1] > kept[2] == 0


def test_it_finds_an_effect_without_linear_trace(edges_of):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1000, 2))
    values[1:, 1] += 2 * (np.abs(values[:-1, 0]) - 0.8)
    panel = Panel.from_arrays([values], ["a", "b"])
    assert edges_of(cmlp(panel, 2, 0)) == {("a", "b", 1)}
    assert edges_of(var_fdr(panel, 2, 0)) == set()


@pytest.mark.usefixtures("quick")
def test_blocks_of_targets_find_the_same_edges(easy_panel, easy_truth, f1_of, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_VALUES", 1)
    assert f1_of(cmlp(easy_panel, 2, 0), easy_truth) >= 0.9
