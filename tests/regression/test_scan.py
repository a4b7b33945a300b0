"""Scans against the same sums written out one product at a time."""

from itertools import combinations

import numpy as np
import pytest

from forecause.regression import scan
from forecause.regression.atoms import Factor


@pytest.fixture(scope="module")
def inputs():
    return np.random.default_rng(0).normal(size=(600, 5))


def z_of(atom, inputs, residual):
    """|sum e p| / |p| in standard errors, with a residual of mean zero and length one."""
    e = residual - residual.mean()
    e = e / np.linalg.norm(e)
    product = np.prod([f.values(inputs) for f in atom.factors], axis=0)
    return abs(e @ product) / np.linalg.norm(product) * np.sqrt(len(inputs))


def test_every_triple_of_functions_of_three_inputs_is_scanned_once(inputs):
    found = scan.TripleScan(inputs, np.arange(5), scan.PLAIN)
    assert found.scanned == len(list(combinations(range(5), 3))) * len(scan.PLAIN) ** 3


def test_blocks_of_any_size_propose_the_same_triples(inputs, monkeypatch):
    residual = inputs[:, 0] * inputs[:, 2] * inputs[:, 4] + inputs[:, 1] * inputs[:, 2]
    once = scan.TripleScan(inputs, np.arange(5), scan.PLAIN)(residual[:, None])
    monkeypatch.setattr(scan, "FACTORS_AT_ONCE", 3)
    again = scan.TripleScan(inputs, np.arange(5), scan.PLAIN)(residual[:, None])
    assert [p.atom for p in once[0]] == [p.atom for p in again[0]]
    np.testing.assert_allclose([p.z for p in once[0]], [p.z for p in again[0]], rtol=1e-5)


@pytest.mark.parametrize("kind", [scan.PairScan, scan.TripleScan])
def test_a_product_is_proposed_first_with_its_own_size(inputs, kind):
    columns = (0, 3) if kind is scan.PairScan else (0, 2, 4)
    noise = np.random.default_rng(1).normal(size=len(inputs))
    residual = np.prod(inputs[:, columns], axis=1) + 0.5 * noise
    (found,) = kind(inputs, np.arange(5), scan.PLAIN)(residual[:, None])
    assert tuple(sorted(found[0].atom.columns)) == columns
    for proposal in found:
        expected = z_of(proposal.atom, inputs, residual)
        np.testing.assert_allclose(proposal.z, expected, rtol=1e-4)
    assert [p.z for p in found] == sorted((p.z for p in found), reverse=True)


def test_a_wave_is_proposed_at_its_own_rate(inputs):
    residual = np.sin(6.0 * inputs[:, 3])
    (found,) = scan.WaveScan(inputs, np.arange(5))(residual[:, None])
    assert found[0].atom.factors[0] == Factor(3, "sin", 6.0)


def test_noise_is_hardly_more_often_beyond_chance_than_the_level_says(inputs):
    noise = np.random.default_rng(2).normal(size=(len(inputs), 400))
    found = scan.PairScan(inputs, np.arange(5), scan.PLAIN)(noise)
    share = np.mean([any(p.is_beyond_chance(0.05) for p in own) for own in found])
    assert 0.01 < share < 0.08


def test_targets_are_scanned_each_on_its_own(inputs):
    residuals = np.stack([inputs[:, 0] * inputs[:, 1], inputs[:, 2] * inputs[:, 3]], axis=1)
    together = scan.PairScan(inputs, np.arange(5), scan.PLAIN)
    both = together(residuals)
    alone = [together(residuals[:, [target]])[0] for target in (0, 1)]
    assert [[p.atom for p in own] for own in both] == [[p.atom for p in own] for own in alone]
