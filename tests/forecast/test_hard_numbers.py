"""Learners on numbers that are hard: what comes out is finite, and units change nothing."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch

import forecause as fc
from forecause.networks import settings as network_settings
from systems import bent_chain, chain, edge_set

FORECASTERS = ("auto", "mlp", "transformer")


@pytest.fixture(autouse=True, scope="module")
def _few_steps():
    """Nothing here has to be learned well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network_settings, "QUICK_STEPS", 40)
        yield


def system(forecaster):
    """Rows of a, b and c; enough and curved for auto, so that learners are tried."""
    return bent_chain(800) if forecaster == "auto" else chain(160)


def collinear(values):
    values[:, 2] = values[:, 0] + values[:, 1]
    return values


def heavy_tails(values):
    return values + 0.1 * np.random.default_rng(1).standard_cauchy(values.shape)


def ties(values):
    return np.round(values)


def constant_in_the_held_out_part(values):
    last = len(values) // 4
    values[-last:, 1] = values[-last, 1]
    return values


def one_wild_cell(values):
    values[40, 0] = 1e12
    return values


HARD = [collinear, heavy_tails, ties, constant_in_the_held_out_part, one_wild_cell]


def discovered(values, forecaster):
    table = pd.DataFrame(values, columns=list("abc"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fc.ForecauseWarning)  # a doubt is a fair answer here
        return fc.discover(table, max_lag=2, forecaster=forecaster, preset="quick")


@pytest.mark.parametrize("hard", HARD)
@pytest.mark.parametrize("forecaster", FORECASTERS)
def test_everything_that_comes_out_is_finite(hard, forecaster, tmp_path):
    found = discovered(hard(system(forecaster)), forecaster)
    assert np.isfinite(found.relevance["relevance"]).all()
    assert np.isfinite(found.losses.drop(columns="chosen").to_numpy(dtype=float)).all()
    assert np.isfinite(found.graph.edges[["score", "effect"]].to_numpy(dtype=float)).all()
    assert np.isfinite(found.forecast(3).to_numpy(dtype=float)).all()
    again = fc.load(found.save(tmp_path / "run"))
    assert again.graph == found.graph


@pytest.fixture(scope="module")
def plain(_few_steps):
    return {name: discovered(system(name), name) for name in FORECASTERS}


@pytest.mark.parametrize("forecaster", FORECASTERS)
def test_the_units_of_a_table_change_no_edge(forecaster, plain):
    other_units = system(forecaster) * [1e-90, 1e90, 2.0**-30] + [0.0, 1e91, 5.0]
    scaled = discovered(other_units, forecaster)
    assert edge_set(scaled.graph) == edge_set(plain[forecaster].graph)
    np.testing.assert_allclose(
        scaled.relevance["relevance"], plain[forecaster].relevance["relevance"], atol=0.02
    )


@pytest.mark.parametrize("forecaster", ["mlp", "transformer"])
def test_two_threads_find_what_one_finds_and_always_the_same(forecaster, monkeypatch):
    monkeypatch.setattr(
        network_settings, "QUICK_STEPS", 10
    )  # threads that wait for each other are slow
    found = []
    for threads in (1, 2, 2):
        torch.set_num_threads(threads)
        try:
            found.append(discovered(chain(100), forecaster))
        finally:
            torch.set_num_threads(1)
    one, two, again = found
    assert two.graph == again.graph  # bit for bit
    assert edge_set(two.graph) == edge_set(one.graph)
    np.testing.assert_allclose(two.relevance["relevance"], one.relevance["relevance"], atol=0.02)
