"""Scans against the same sums written out one product at a time."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm

from forecause.config.thresholds import THRESHOLDS
from forecause.regression import scan
from forecause.regression.atoms import Factor, atom_of
from forecause.regression.least_squares import KnownFeatures


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


def test_a_wave_is_measured_around_its_mean(inputs):
    residual = np.cos(3.0 * inputs[:, 1]) + np.random.default_rng(3).normal(size=len(inputs))
    (found,) = scan.WaveScan(inputs, np.array([4, 1]))(residual[:, None])
    assert found[0].atom.columns == (1,)
    assert found[0].scanned == 2 * 2 * len(scan.WAVE_RATES)
    assert len(found) == scan.PROPOSALS
    e = residual - residual.mean()
    for proposal in found:
        wave = proposal.atom.values(inputs)
        correlation = np.corrcoef(e, wave)[0, 1]
        assert proposal.z == pytest.approx(abs(correlation) * np.sqrt(len(inputs)), rel=1e-3)


@pytest.mark.parametrize("level", [0.0, 0.7, 3.0])
def test_an_input_that_stands_still_is_no_wave(inputs, level):
    still = inputs.copy()
    still[:, 2] = level
    assert scan.WaveScan(still, np.array([2]))(inputs[:, :2]) == [[], []]


def test_every_pair_of_functions_of_two_inputs_is_scanned_once(inputs):
    found = scan.PairScan(inputs, np.arange(5), scan.PLAIN)
    assert found.scanned == 10 * len(scan.PLAIN) ** 2
    (proposals,) = found((inputs[:, 0] * inputs[:, 3])[:, None])
    assert {p.scanned for p in proposals} == {40}


@pytest.mark.parametrize(
    ("kind", "bound"),
    [(scan.PairScan, "MOST_COLUMNS"), (scan.TripleScan, "MOST_COLUMNS_OF_TRIPLES")],
)
def test_of_very_many_inputs_the_first_are_scanned(inputs, monkeypatch, kind, bound):
    monkeypatch.setattr(scan, bound, 3)
    found = kind(inputs, np.arange(5), scan.PLAIN)
    assert found.scanned == {scan.PairScan: 3 * 4, scan.TripleScan: 8}[kind]
    assert {factor.column for factor in found.factors} == {0, 1, 2}


def test_of_many_triples_the_strongest_few_are_proposed_whatever_block_they_lie_in(
    inputs, monkeypatch
):
    monkeypatch.setattr(scan, "FACTORS_AT_ONCE", 2)
    monkeypatch.setattr(scan, "PROPOSALS", 3)
    residual = inputs[:, 2] * inputs[:, 3] * inputs[:, 4] + inputs[:, 0] * inputs[:, 1]
    few = scan.TripleScan(inputs, np.arange(5), scan.PLAIN)(residual[:, None])[0]
    monkeypatch.setattr(scan, "PROPOSALS", 1000)
    every = scan.TripleScan(inputs, np.arange(5), scan.PLAIN)(residual[:, None])[0]
    assert len(few) == 3
    assert [p.atom for p in few] == [p.atom for p in every[:3]]


def test_long_tables_are_scanned_on_rows_that_are_spread_over_time():
    assert scan._thinned(10, 4).tolist() == [0, 3, 6, 9]
    assert scan._thinned(3, 10).tolist() == [0, 1, 2]


def test_only_what_stands_out_is_looked_for_the_largest_first():
    least = THRESHOLDS.search.least_z
    values = np.array([[least, least + 1], [least + 3, least + 2]])
    assert scan._largest(values, 2) == [(1, 0), (1, 1)]
    assert scan._largest(values, 9) == [(1, 0), (1, 1), (0, 1)]


def test_a_residual_that_never_varies_goes_with_nothing(inputs):
    assert scan.PairScan(inputs, np.arange(5), scan.PLAIN)(np.ones((600, 1))) == [[]]


def test_a_proposal_is_beyond_chance_by_a_two_sided_test_of_all_that_was_scanned():
    atom = atom_of(Factor(0, "line"))
    least = norm.isf(0.05 / 2 / 40)
    assert scan.Proposal(atom, least * 1.001, 40).is_beyond_chance(0.05)
    assert not scan.Proposal(atom, least * 0.999, 40).is_beyond_chance(0.05)
    assert not scan.Proposal(atom, -9.0, 40).is_beyond_chance(0.05)
    alone = norm.isf(0.05 / 2)
    assert scan.Proposal(atom, alone * 1.001, 0).is_beyond_chance(0.05)
    assert not scan.Proposal(atom, alone * 0.999, 1).is_beyond_chance(0.05)


def test_columns_of_all_groups_are_tested_and_the_curved_ones_scanned():
    groups = scan.InputGroups(
        (np.array([3]), np.array([0, 1])), np.array([True, False, True, True])
    )
    assert groups.tested.tolist() == [0, 1, 3]
    assert groups.scanned.tolist() == [0, 3]


class TestConfirmed:
    """What a scan proposed, looked at on all rows beside what is known."""

    PAIR, OTHER = (
        atom_of(Factor(0, "line"), Factor(1, "line")),
        atom_of(Factor(2, "line"), Factor(3, "line")),
    )
    NONE = atom_of(Factor(0, "line"), Factor(4, "line"))
    LINE = atom_of(Factor(0, "line"))

    def residual(self, inputs, other=-0.6):
        noise = np.random.default_rng(5).normal(size=len(inputs))
        return inputs[:, 0] * inputs[:, 1] + other * inputs[:, 2] * inputs[:, 3] + 0.5 * noise

    def known(self, inputs):
        return KnownFeatures.of(np.column_stack([np.ones(len(inputs)), inputs]))

    def confirmed(self, inputs, proposals, most=9, level=0.005):
        residual = self.residual(inputs)
        return scan.confirmed(proposals, inputs, residual, self.known(inputs), most, level)

    def proposals(self, *sizes):
        atoms = (self.PAIR, self.OTHER, self.NONE)
        return [scan.Proposal(a, z, 40) for a, z in zip(atoms, sizes, strict=True)]

    def test_what_the_residual_follows_is_taken_the_strongest_first(self, inputs):
        assert self.confirmed(inputs, self.proposals(8, 9, 7)) == [self.PAIR, self.OTHER]
        assert self.confirmed(inputs, self.proposals(8, 9, 7), most=1) == [self.PAIR]
        assert self.confirmed(inputs, self.proposals(8, 9, 7) * 2) == [self.PAIR, self.OTHER]

    def test_what_is_not_beyond_chance_is_not_looked_at(self, inputs):
        assert self.confirmed(inputs, self.proposals(8, 2, 2)) == [self.PAIR]
        assert self.confirmed(inputs, self.proposals(2, 2, 2)) == []
        weak = norm.isf(0.2 / 2 / 40) * 1.01
        assert self.confirmed(inputs, self.proposals(8, weak, 2), level=0.2)[1:] == [self.OTHER]
        assert self.confirmed(inputs, self.proposals(8, weak, 2), level=0.1)[1:] == []

    def test_what_known_features_explain_is_not_taken(self, inputs):
        line = [scan.Proposal(self.LINE, 9.0, 40)]
        residual = inputs[:, 0] + 0.1 * np.random.default_rng(0).normal(size=len(inputs))
        assert scan.confirmed(line, inputs, residual, self.known(inputs), 9, 0.005) == []
        nothing = KnownFeatures.of(np.ones((len(inputs), 1)))
        assert scan.confirmed(line, inputs, residual, nothing, 9, 0.005) == [self.LINE]

    def test_an_atom_is_beyond_a_level_if_its_robust_p_value_is_below_it(self, inputs):
        residual = 0.1 * self.residual(inputs) + np.random.default_rng(1).normal(size=len(inputs))
        known = self.known(inputs)
        for atom in (self.PAIR, self.OTHER, self.NONE):
            left = known.taken_off(atom.values(inputs)[:, None])[:, 0] * residual
            p_value = 2 * norm.sf(abs(left.sum()) / np.sqrt((left**2).sum()))
            assert scan.beyond([atom], inputs, residual, known, p_value * 1.02) == [atom]
            assert scan.beyond([atom], inputs, residual, known, p_value * 0.98) == []
        assert scan.beyond([], inputs, residual, known, 0.5) == []


class TestPursuit:
    """Columns are taken one after the other, each freed of those before it."""

    def columns(self):
        u, v, w = np.random.default_rng(7).normal(size=(3, 400))
        return u, v, w

    def test_a_near_copy_of_what_was_taken_is_not_taken(self):
        u, v, w = self.columns()
        values = np.column_stack([u + 0.1 * w, u, v])
        assert scan._pursuit(values, 3 * u - 2 * v, 3) == [1, 2]
        # with a fifth of its own left it counts, if the residual follows that
        own = np.column_stack([u, u + 0.5 * w])
        assert scan._pursuit(own, 3 * u + 0.1 * w, 3) == [0, 1]

    def test_no_more_are_taken_than_asked_for_and_there_are(self):
        u, v, w = self.columns()
        values = np.column_stack([u, v, w])
        assert scan._pursuit(values, 3 * u + 2 * v + w, 2) == [0, 1]
        assert scan._pursuit(values, 3 * u + 2 * v + w, 9) == [0, 1, 2]
        assert scan._pursuit(values, 3 * u + 2 * v + w, 0) == []

    @pytest.mark.parametrize(("factor", "taken"), [(1.01, [0]), (0.99, [])])
    def test_what_does_not_reach_the_least_t_value_is_not_taken(self, factor, taken):
        count, t = 400, factor * THRESHOLDS.search.least_t
        # residuals m + 1 and m - 1: t = count m / sqrt(count (m^2 + 1))
        m = t / np.sqrt(count - t**2)
        residual = m + np.where(np.arange(count) % 2, 1.0, -1.0)
        assert scan._pursuit(np.ones((count, 1)), residual, 1) == taken
        assert scan._pursuit(-np.ones((count, 1)), residual, 1) == taken
