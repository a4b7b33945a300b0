"""Whether a source drives a target at all, against F-tests and combinations worked out by hand."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import cauchy
from scipy.stats import f as f_distribution

import forecause.forecast.input_tests.given_parents as tests
from forecause.config.thresholds import THRESHOLDS
from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.edges import summary_tests
from forecause.edges.summary_tests import SummaryTests, summary_edges
from forecause.forecast.input_tests.protocol import link_q_values
from forecause.graph.axes import labelled

LAGS = 2


def panel(seed=3, rows=400):
    """x0 drives x1 by a line, x2 by a square and, faintly, x3; x1 drives x3."""
    x = np.random.default_rng(seed).normal(size=(rows, 4))
    x[1:, 1] += 0.5 * x[:-1, 0]
    x[2:, 2] += 0.6 * x[:-2, 0] ** 2
    x[2:, 3] += 0.2 * x[1:-1, 0] + 0.1 * x[:-2, 0] + 0.5 * x[1:-1, 1]
    return Panel.from_arrays([x], [f"x{i}" for i in range(4)])


@pytest.fixture(scope="module")
def lagged():
    windows = Windows.of(panel(), LAGS)
    allowed = np.ones((4, windows.inputs), dtype=bool)
    allowed[3, 2] = False  # a lag of x2
    return tests.ConditionalTests.of(windows, allowed)


def f_test(lagged, target, given, tested):
    """p-value of a comparison of residual sums of squares."""
    y, z = lagged.outcome(target), lagged.features

    def left(columns):
        return float(np.square(y - z[:, columns] @ np.linalg.lstsq(z[:, columns], y)[0]).sum())

    freedom = len(y) - len(given) - len(tested)
    full = left([*given, *tested])
    statistic = (left(given) - full) / len(tested) / (full / freedom)
    return f_distribution.sf(statistic, len(tested), freedom)


def terms_of(lagged, target, inputs):
    """The features that inputs have in the model of a target, or their lines."""
    bent = lagged.models[target].bent
    chosen = [
        (lagged.terms.curves if bent.get(i, False) else lagged.terms.lines)[i] for i in inputs
    ]
    return [int(place) for places in chosen for place in places]


@pytest.mark.parametrize("target", range(4))
@pytest.mark.parametrize("source", range(4))
def test_all_lags_of_a_source_are_tested_given_the_other_parents(lagged, target, source):
    own = [i for i in range(8) if i % 4 == source and lagged.allowed[target, i]]
    others = [i for i in lagged.models[target].bent if i % 4 != source]
    given = [0, *terms_of(lagged, target, others)]
    expected = f_test(lagged, target, given, terms_of(lagged, target, own))
    found = SummaryTests(lagged).joint(target, source)
    if expected >= THRESHOLDS.tests.confirm_level:
        assert found == pytest.approx(expected, rel=1e-4)
    else:
        assert found >= expected * 0.999
        assert found < 0.05 or expected > 1e-4


def test_given_the_lines_of_all_other_sources_the_larger_of_two_p_values_counts(lagged):
    joint = SummaryTests(lagged)
    for target, source in ((3, 0), (3, 1), (1, 0), (0, 2)):
        lags = np.array([i for i in range(8) if i % 4 == source and lagged.allowed[target, i]])
        tested = np.array(terms_of(lagged, target, lags))
        others = [i for i in lagged.models[target].bent if i % 4 != source]
        given = np.array([0, *terms_of(lagged, target, others)])
        lines = [i for i in range(8) if i % 4 != source and lagged.allowed[target, i]]
        every = sorted({*given.tolist(), *(int(p) for i in lines for p in lagged.terms.lines[i])})
        classical = f_test(lagged, target, every, tested)
        outcome = lagged.outcome(target)
        robust = tests.robust_p_value(lagged.features, outcome, np.array(every), tested)
        found = joint._given_all_lines(target, given, tested, lags)
        assert found == pytest.approx(max(classical, robust), rel=1e-4)


def test_a_link_is_no_surer_than_unequal_noise_and_all_other_lines_let_it_be(lagged, monkeypatch):
    joint = SummaryTests(lagged)
    plain = joint.joint(3, 1)
    assert plain < 1e-6
    asked = []
    monkeypatch.setattr(
        type(lagged),
        "confirmed",
        lambda self, target, p, given_all: asked.append((target, float(p), float(given_all))) or p,
    )
    monkeypatch.setattr(summary_tests, "robust_p_value", lambda *_: 0.03)
    monkeypatch.setattr(type(lagged), "has_rows_for_all", lambda self, target: True)
    assert joint.joint(3, 1) == 0.03
    assert asked == [(3, 0.03, 0.03)]
    monkeypatch.setattr(type(lagged), "has_rows_for_all", lambda self, target: False)
    assert joint.joint(3, 1) == 0.03
    assert len(asked) == 1


def test_pairs_without_an_allowed_lag_are_not_tested(lagged):
    windows = Windows.of(panel(), LAGS)
    allowed = np.ones((4, 8), dtype=bool)
    allowed[0, [1, 5]] = False  # both lags of x1
    allowed[2, 7] = False
    found = SummaryTests(tests.ConditionalTests.of(windows, allowed)).joint_p_values()
    assert np.argwhere(np.isnan(found)).tolist() == [[0, 1]]


def test_lags_are_combined_by_the_mean_of_their_cauchy_quantiles():
    p_values = np.random.default_rng(0).uniform(size=(3, 3, 4))
    p_values[0, 1, 2:] = np.nan
    p_values[1, 2, 1] = np.nan
    p_values[2, 0] = np.nan
    found = summary_tests._of_lags_alone(p_values)
    for target, source in np.ndindex(3, 3):
        own = p_values[target, source]
        own = own[np.isfinite(own)]
        expected = cauchy.sf(cauchy.isf(own).mean()) if len(own) else np.nan
        np.testing.assert_allclose(found[target, source], expected, rtol=1e-6)


class TestTable:
    NAMES = ("x0", "x1", "x2", "x3")
    EVERY = labelled(np.ones((4, 4, LAGS), dtype=bool), NAMES)

    def p_values(self):
        values = np.random.default_rng(1).uniform(0.001, 1, size=(4, 4, LAGS))
        values[2, 3] = np.nan
        return labelled(values, self.NAMES)

    def told(self, monkeypatch, windows, filled=(0.0, 0.0, 0.0, 0.0), joint=0.2):
        """The table where all joint tests have one p-value, but that of x1 -> x0."""
        of_pairs = np.full((4, 4), joint)
        of_pairs[0, 1] = np.nan
        monkeypatch.setattr(SummaryTests, "joint_p_values", lambda self: of_pairs)
        monkeypatch.setattr(Windows, "filled_share", property(lambda self: np.array(filled)))
        return summary_edges(windows, self.p_values(), self.EVERY)

    def expected(self, joint_of=range(4)):
        alone = summary_tests._of_lags_alone(self.p_values().values)
        share = THRESHOLDS.edges.joint_share
        both = cauchy.sf(share * cauchy.isf(0.2) + (1 - share) * cauchy.isf(alone))
        both[0, 1] = alone[0, 1]
        return np.where(np.isin(range(4), joint_of)[:, None], both, alone)

    def check(self, table, of_pairs):
        q_values = link_q_values(of_pairs)
        assert len(table) == 15
        assert table["p"].is_monotonic_increasing
        assert table.index.tolist() == list(range(15))
        for row in table.to_dict("records"):
            place = int(row["target"][1]), int(row["source"][1])
            assert row["p"] == pytest.approx(of_pairs[place], rel=1e-6)
            assert row["q"] == pytest.approx(q_values[place], rel=1e-6)

    def test_joint_tests_take_part_with_their_share(self, monkeypatch):
        windows = Windows.of(panel(), LAGS)
        self.check(self.told(monkeypatch, windows), self.expected())

    def test_targets_with_filled_cells_keep_the_tests_of_single_lags(self, monkeypatch):
        windows, most = Windows.of(panel(), LAGS), THRESHOLDS.tests.most_filled
        table = self.told(monkeypatch, windows, (0.9 * most, 1.1 * most, 0.5, 0.0))
        self.check(table, self.expected([0, 3]))

    def test_with_many_inputs_or_domains_single_lags_tell_alone(self, monkeypatch):
        windows = Windows.of(panel(), LAGS)  # of 8 inputs
        monkeypatch.setattr(summary_tests, "MANY_INPUTS", 8)
        self.check(self.told(monkeypatch, windows), self.expected())
        monkeypatch.setattr(summary_tests, "MANY_INPUTS", 7)
        self.check(self.told(monkeypatch, windows), self.expected([]))
        monkeypatch.setattr(summary_tests, "MANY_INPUTS", 100)
        halves = panel().with_domain(np.arange(400) // 200, ("early", "late"))
        self.check(self.told(monkeypatch, Windows.of(halves, LAGS)), self.expected([]))

    def test_without_a_test_nothing_is_told(self):
        nothing = self.p_values() * np.nan
        table = summary_edges(Windows.of(panel(), LAGS), nothing, self.EVERY)
        assert (len(table), list(table)) == (0, ["source", "target", "p", "q"])

    def test_equal_pairs_are_in_the_order_of_target_and_source(self, monkeypatch):
        monkeypatch.setattr(summary_tests, "MANY_INPUTS", 0)
        equal = xr.full_like(self.p_values(), 0.5)
        table = summary_edges(Windows.of(panel(), LAGS), equal, self.EVERY)
        pairs = list(zip(table["target"], table["source"], strict=True))
        assert pairs == sorted(pairs)
        monkeypatch.setattr(summary_tests, "MOST_PAIRS", 16)
        assert len(summary_edges(Windows.of(panel(), LAGS), equal, self.EVERY)) == 16
        monkeypatch.setattr(summary_tests, "MOST_PAIRS", 15)
        assert len(summary_edges(Windows.of(panel(), LAGS), equal * 1.2, self.EVERY)) == 0
