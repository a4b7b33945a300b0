"""Random graphs have the density that was asked for."""

import numpy as np
import pytest

from forecause.data import Panel
from forecause.errors import InputError
from forecause_bench.rivals.random_guess import random_at_density, random_guess


@pytest.fixture(scope="module")
def panel():
    noise = np.random.default_rng(0).normal(size=(100, 20))
    return Panel.from_arrays([noise], [f"v{i}" for i in range(20)])


@pytest.mark.parametrize("density", [0.0, 0.1, 0.5, 1.0])
def test_the_share_of_edges_is_the_density(density, panel):
    graph = random_at_density(density)(panel, 5, 0)
    assert len(graph) / 2000 == pytest.approx(density, abs=0.03)


def test_targets_have_three_parents_on_average(panel):
    counts = [len(random_guess(panel, 5, seed)) for seed in range(20)]
    assert np.mean(counts) / 20 == pytest.approx(3, abs=0.3)


def test_other_seeds_give_other_graphs(panel):
    assert random_guess(panel, 5, 0) != random_guess(panel, 5, 1)


def test_a_share_beyond_one_is_refused():
    with pytest.raises(InputError, match=r"between 0 and 1, found 1\.5"):
        random_at_density(1.5)
