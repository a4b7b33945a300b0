"""The certainty of an edge: its own evidence and how it survives other analyses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import xarray as xr
from scipy.stats import norm

import forecause as fc
from forecause.config.thresholds import THRESHOLDS, Thresholds, using
from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.edges.certainty import (
    DECAYS,
    KNOT_QUANTILES,
    _evidence,
    _longer,
    _look_like_something_else,
    _move_together,
    _of_variables,
    _p_values,
    _smaller,
    certainty,
    gone_in_calm,
    grade,
    slow_averages,
    with_grades,
)
from forecause.graph import LaggedGraph
from forecause.graph.axes import labelled_together
from forecause.regression.robust import wald_p_values
from forecause.regression.splines import curve_features


def windows(rows: int = 700, fades: bool = False) -> Windows:
    """a drives b at lag 1, in the first half alone if it fades."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, 2))
    size = np.where(np.arange(rows - 1) < rows / 2, 0.6, 0.0) if fades else 0.3
    values[1:, 1] += size * values[:-1, 0]
    return Windows.of(Panel.of(values), 2)


EVERYWHERE = np.ones((2, 2, 2), dtype=bool)  # (target, source, lag)


def q_values(of: Windows, value: float) -> xr.DataArray:
    named = {"q": np.full((2, 2, 2), value)}
    return labelled_together(named, of.panel.variables, {})["q"]


def test_tests_of_single_columns_are_those_of_statsmodels() -> None:
    rng = np.random.default_rng(3)
    design = np.column_stack([rng.normal(size=(200, 4)), np.ones(200)])
    target = design[:, 0] * 0.3 + rng.normal(size=200) * (1 + np.abs(design[:, 1]))
    fitted = sm.OLS(target, design).fit(cov_type="HC3", use_t=True)
    found = wald_p_values(design, target[:, None], 4, 1)[0]
    np.testing.assert_allclose(found, fitted.pvalues[:4], rtol=1e-6)
    joint = fitted.f_test(np.eye(5)[:2]).pvalue
    assert wald_p_values(design, target[:, None], 2, 2)[0, 0] == pytest.approx(joint, rel=1e-5)


def test_curves_are_straight_beyond_their_outer_knots() -> None:
    past = np.linspace(-10, 10, 400)[:, None, None]
    features = curve_features(past, KNOT_QUANTILES)[:, 0, 0]  # (window, feature)
    for feature in features.T:
        np.testing.assert_allclose(np.diff(feature[385:], 2), 0, atol=1e-8)


def test_an_edge_that_is_there_is_surer_than_one_that_is_not() -> None:
    own = windows()
    sure = certainty(own, q_values(own, 0.01))
    assert float(sure[1, 0, 0]) > 0.9
    assert float(sure[0, 1, 1]) < 0.5


def test_what_holds_in_one_half_only_is_less_sure() -> None:
    steady, fading = windows(), windows(fades=True)
    q = q_values(steady, 1e-4)
    assert float(certainty(fading, q)[1, 0, 0]) < float(certainty(steady, q)[1, 0, 0])


def test_a_smaller_q_value_is_surer_and_none_is_unknown() -> None:
    own = windows()
    assert float(certainty(own, q_values(own, 1e-6))[0, 1, 1]) > float(
        certainty(own, q_values(own, 0.04))[0, 1, 1]
    )
    assert np.isnan(certainty(own, q_values(own, np.nan))).all()


def test_grades_are_words_for_the_certainty() -> None:
    assert [grade(sure) for sure in (0.99, 0.9, 0.5, float("nan"))] == [
        *("firm", "likely", "tentative", "tentative")
    ]


def test_the_smaller_of_two_p_values_counts_twice() -> None:
    line, curve = np.array([0.01, 0.2, 0.9]), np.array([0.03, 0.1, 0.8])
    np.testing.assert_allclose(_smaller(line, curve), [0.02, 0.2, 1.0])
    assert _smaller(line, line) is line  # where curves were not tried, there is one test


def test_a_link_that_only_large_values_show_is_not_firm() -> None:
    rng = np.random.default_rng(0)
    values, event = rng.normal(size=(700, 2)), np.where(rng.uniform(size=700) < 0.03, 6.0, 0.0)
    values[:, 0] += event
    values[1:, 1] += event[:-1]
    rare, steady = Windows.of(Panel.of(values), 2), windows()
    assert grade(float(certainty(steady, q_values(steady, 1e-6))[1, 0, 0])) == "firm"
    assert grade(float(certainty(rare, q_values(rare, 1e-6))[1, 0, 0])) == "likely"
    assert gone_in_calm(rare, EVERYWHERE)[1, 0].tolist() == [True, False]
    assert not gone_in_calm(steady, EVERYWHERE).any()


def labelled_windows(rows: int = 400) -> Windows:
    """A number and a label of three levels that follows it."""
    rng = np.random.default_rng(5)
    number = rng.normal(size=rows)
    level = np.digitize(np.r_[0, number[:-1]] + 0.5 * rng.normal(size=rows), [-0.5, 0.5])
    table = pd.DataFrame({"x": number, "kind": np.array(["low", "middle", "high"])[level]})
    return Windows.of(fc.read(table, labels=["kind"]), 1)


class TestEvidence:
    """Certainty from the parts that it is made of, each told by hand."""

    LINE, CURVE, EARLY, LATE, LONGER, CALM = 1e-6, 1e-4, 1e-5, 1e-3, 1e-4, 1e-3

    def sure(self, monkeypatch, own=1e-4, held=True, elsewhere=False, together=False, **parts):
        """The certainty of every edge where each part has one p-value for all of them."""
        windows_of_it = windows()
        told = {name: parts.get(name, getattr(self, name.upper())) for name in
                ("line", "curve", "early", "late", "longer", "calm")}  # fmt: skip
        shape = (2, 2, 2)

        def as_array(value):
            return np.full(shape, value)

        def p_values(looked, curved):
            return as_array(told["curve" if curved else "line"])

        def either(looked):
            if looked is calm_windows:
                return as_array(told["calm"])
            first = looked.rows[0] == windows_of_it.rows[0]
            return as_array(told["early" if first else "late"])

        def longer(looked):
            return None if told["longer"] is None else as_array(told["longer"])

        calm_windows = windows_of_it.at(np.arange(50))
        monkeypatch.setattr(Windows, "calm", property(lambda _: calm_windows))
        for name, function in {
            "_p_values": p_values,
            "_either": either,
            "_longer": longer,
            "_move_together": lambda looked: as_array(together).astype(bool),
            "_look_like_something_else": lambda looked, q: as_array(elsewhere).astype(bool),
        }.items():
            monkeypatch.setattr(f"forecause.edges.certainty.{name}", function)
        return float(certainty(windows_of_it, q_values(windows_of_it, own))[0, 0, 0])

    def expected(self, own, half, longer, model):
        """The logistic function of weighted square roots of powers of ten."""
        bounds = THRESHOLDS.grades
        powers = np.sqrt([own, half, longer, model])
        weights = bounds.own_weight, bounds.half_weight, bounds.longer_weight, bounds.model_weight
        return 1 / (1 + np.exp(-bounds.intercept - powers @ weights))

    def test_it_is_a_logistic_function_of_the_weaker_evidence_of_each_kind(self, monkeypatch):
        assert self.sure(monkeypatch) == pytest.approx(self.expected(4, 3, 4, 4))
        assert self.sure(monkeypatch, early=1e-2) == pytest.approx(self.expected(4, 2, 4, 4))
        assert self.sure(monkeypatch, curve=1e-9) == pytest.approx(self.expected(4, 3, 4, 6))
        assert self.sure(monkeypatch, own=0.1) == pytest.approx(self.expected(1, 3, 4, 4))

    def test_without_older_lags_the_smaller_of_lines_and_curves_stands_in_for_them(
        self, monkeypatch
    ):
        found = self.sure(monkeypatch, longer=None, line=1e-5, curve=1e-4)
        assert found == pytest.approx(self.expected(4, 3, 5 - np.log10(2), 4))

    def test_evidence_is_bounded_and_none_without_a_p_value(self):
        most = THRESHOLDS.grades.most_powers
        found = _evidence(np.array([1e-4, 1.0, np.nan, 0.0, 10.0**-most, 10.0 ** -(most - 1)]))
        np.testing.assert_allclose(found, np.sqrt([4, 0, 0, most, most, most - 1]))

    @pytest.mark.parametrize(
        "doubt",
        [
            {"longer": 1.1 * THRESHOLDS.grades.firm_beside_slow},
            {"calm": 1.1 * THRESHOLDS.grades.firm_in_calm},
            {"together": True},
            {"elsewhere": True},
        ],
    )
    def test_what_may_be_something_else_is_just_not_firm(self, monkeypatch, doubt):
        strong = {"own": 1e-9, "line": 1e-9, "curve": 1e-9, "early": 1e-9, "late": 1e-9}
        assert self.sure(monkeypatch, **strong, longer=1e-9) > 0.99
        cut = self.sure(monkeypatch, **{"longer": 1e-9} | strong | doubt)
        assert cut == pytest.approx(THRESHOLDS.grades.firm - 0.01)
        weak = self.sure(monkeypatch, **{"own": 0.1} | doubt)
        plain = self.expected(1, 3, -np.log10(doubt.get("longer", self.LONGER)), 4)
        assert weak == pytest.approx(plain)

    def test_at_their_bounds_other_analyses_let_an_edge_be_firm(self, monkeypatch):
        bounds = THRESHOLDS.grades
        at = {"longer": bounds.firm_beside_slow, "calm": bounds.firm_in_calm}
        strong = {"own": 1e-12, "line": 1e-12, "curve": 1e-12, "early": 1e-12, "late": 1e-12}
        assert self.sure(monkeypatch, **strong, **at) > bounds.firm

    def test_with_too_many_inputs_the_own_q_value_decides_alone(self, monkeypatch):
        monkeypatch.setattr("forecause.edges.certainty.MOST_INPUTS", 3)
        own = windows()
        found = certainty(own, q_values(own, 1e-4))
        np.testing.assert_allclose(found, self.expected(4, 4, 4, 4))
        assert not gone_in_calm(own, EVERYWHERE).any()
        assert not _move_together(own).any()
        assert gone_in_calm(own, EVERYWHERE).shape == _move_together(own).shape == (2, 2, 2)


@pytest.mark.parametrize(("count", "is_retested"), [(8, False), (9, True)])
def test_an_edge_is_tested_again_where_windows_are_twice_its_inputs(
    monkeypatch, count, is_retested
):
    looked = []
    monkeypatch.setattr(
        "forecause.edges.certainty._p_values",
        lambda of, *_: looked.append(of) or np.ones((2, 2, 2)),
    )
    few = windows().at(np.arange(count))  # of 4 inputs
    gone_in_calm(few, EVERYWHERE)
    assert bool(looked) == is_retested
    looked.clear()
    certainty(few, q_values(few, 0.01))
    assert bool(looked) == is_retested


def test_gone_in_calm_is_what_all_windows_show_clearly_and_calm_ones_not_at_all(monkeypatch):
    bounds, own = THRESHOLDS.diagnosis, windows()
    clear, gone = bounds.clear_with_events, bounds.gone_in_calm
    calm_windows = own.at(np.arange(50))
    monkeypatch.setattr(Windows, "calm", property(lambda _: calm_windows))
    for in_all, in_calm, expected in (
        (0.9 * clear, 1.1 * gone, True),
        (1.1 * clear, 1.1 * gone, False),
        (0.9 * clear, 0.9 * gone, False),
    ):
        monkeypatch.setattr(
            "forecause.edges.certainty._either",
            lambda of, a=in_all, c=in_calm: np.full((2, 2, 2), c if of is calm_windows else a),
        )
        assert (gone_in_calm(own, EVERYWHERE) == expected).all()


def test_slow_averages_are_exponential_means_of_the_rows_before_a_window() -> None:
    series = [np.random.default_rng(seed).normal(1, 1, size=(40, 2)) for seed in (0, 1)]
    series[0][20, 1] = np.nan  # leaves the mean of its column as it is
    panel = Panel.from_arrays(series, ["a", "b"])
    own = Windows.of(panel, 3)
    found = slow_averages(own).reshape(len(own), 2, 2)  # (window, decay, column)
    centre = np.nanmean(np.concatenate(series), axis=0)
    for place, row in enumerate(own.rows.tolist()):
        first, values = (0, series[0]) if row < 40 else (40, series[1])
        before = values[: row - first - 3] - centre
        for d, decay in enumerate(DECAYS):
            for column in range(2):
                mean = 0.0
                for value in before[:, column][np.isfinite(before[:, column])]:
                    mean = decay * mean + (1 - decay) * value
                assert found[place, d, column] == pytest.approx(mean, abs=1e-6)


def test_averages_of_very_long_tables_are_not_taken(monkeypatch) -> None:
    own = windows(300)
    monkeypatch.setattr("forecause.edges.certainty.MOST_AVERAGED_ROWS", 300)
    assert slow_averages(own).shape == (298, 4)
    monkeypatch.setattr("forecause.edges.certainty.MOST_AVERAGED_ROWS", 299)
    assert slow_averages(own).shape == (298, 0)


class TestSingleInputs:
    """The p-value of every input given all others, in its place."""

    def expected(self, own: Windows, beside: np.ndarray | None = None, lags: int = 2) -> np.ndarray:
        """(target, source, lag) of the first `lags` by statsmodels."""
        batch = own.whole()
        past = batch.past.astype(float).reshape(len(own), -1)
        design = np.column_stack([past, np.ones(len(own)), *([] if beside is None else [beside])])
        found = np.empty((2, 2, lags))
        for target in range(2):
            fit = sm.OLS(batch.target[:, target].astype(float), design)
            p_values = fit.fit(cov_type="HC3", use_t=True).pvalues
            steps = p_values[: own.inputs].reshape(own.max_lag, 2)[::-1][:lags]
            found[target] = steps.T
        return found

    def test_lines_are_those_of_statsmodels(self) -> None:
        own = windows()
        np.testing.assert_allclose(_p_values(own, False), self.expected(own), rtol=1e-4)

    def test_older_lags_and_averages_stand_beside_and_are_not_tested(self) -> None:
        longer = Windows.of(windows().panel, 5)
        slow = np.random.default_rng(0).normal(size=(len(longer), 3))
        found = _p_values(longer, False, 2, slow)
        np.testing.assert_allclose(found, self.expected(longer, slow), rtol=1e-4)

    def test_curves_see_what_lines_do_not(self) -> None:
        rng = np.random.default_rng(1)
        values = rng.normal(size=(500, 2))
        values[2:, 1] += 0.5 * values[:-2, 0] ** 2
        own = Windows.of(Panel.of(values), 2)
        assert _p_values(own, False)[1, 0, 1] > 1e-4
        assert np.argwhere(_p_values(own, True) < 1e-8).tolist() == [[1, 0, 1]]

    @pytest.mark.parametrize(("count", "bends"), [(47, False), (48, True)])
    def test_curves_need_four_windows_for_each_of_their_numbers(self, count, bends) -> None:
        few = windows().at(np.arange(count))  # of 4 inputs, each of 3 numbers
        assert (_p_values(few, True) != _p_values(few, False)).any() == bends

    @pytest.mark.parametrize(("most", "bends"), [(3, False), (4, True)])
    def test_curves_of_very_many_inputs_are_not_tried(self, monkeypatch, most, bends) -> None:
        monkeypatch.setattr("forecause.edges.certainty.MOST_CURVES", most)
        own = windows()
        assert (_p_values(own, True) != _p_values(own, False)).any() == bends

    def test_the_smallest_of_a_labels_p_values_counts_times_their_number(self) -> None:
        coding = labelled_windows().panel.coding  # a number, then three levels
        columns = np.full((4, 4, 1), 0.5)
        columns[2, 0], columns[0, 3], columns[1, 2] = 0.01, 0.02, 0.003
        found = _of_variables(columns, coding)[..., 0]
        np.testing.assert_allclose(found, [[0.5, 3 * 0.02], [3 * 0.01, 9 * 0.003]])
        columns[1:, 0] = 0.4
        assert _of_variables(columns, coding)[1, 0, 0] == 1.0


class TestBesideOlderLags:
    """An edge is tested again beside older lags and slow averages."""

    def test_it_is_as_usual_where_windows_are_too_few(self) -> None:
        assert _longer(windows(22)) is None  # 20 windows, of a longer lag too few for any

    def test_it_is_the_smaller_p_value_of_lines_and_curves_beside_them(self) -> None:
        own = windows().at(np.arange(100, 600))
        longer = Windows.of(own.panel, 5)
        kept = longer.at(np.flatnonzero(np.isin(longer.rows, own.rows)))
        slow = slow_averages(kept)
        p_values = [_p_values(kept, curved, 2, slow) for curved in (False, True)]
        expected = np.minimum(2 * np.minimum(*p_values), 1)
        np.testing.assert_allclose(_longer(own), expected)

    @pytest.mark.parametrize(("count", "is_usual"), [(28, True), (29, False)])
    def test_twice_as_many_windows_as_numbers_are_enough(self, count, is_usual) -> None:
        own = windows().at(np.arange(100, 100 + count))  # 10 lagged inputs and 4 averages
        assert (_longer(own) is None) == is_usual


class TestMovingTogether:
    """Residuals of one row that go with each other."""

    def panel(self, shared: float, columns: int = 4, seed: int = 0) -> Panel:
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(600, columns))
        values[:, 1] += shared * values[:, 0]
        return Panel.of(values)

    def test_links_of_both_with_any_other_are_doubted_and_own_pasts_are_not(self) -> None:
        found = _move_together(Windows.of(self.panel(0.5), 1))[..., 0]
        expected = np.zeros((4, 4), dtype=bool)
        expected[:2] = expected[:, :2] = True
        np.fill_diagonal(expected, False)
        np.testing.assert_array_equal(found, expected)

    def test_independent_residuals_raise_no_doubt(self) -> None:
        assert not _move_together(Windows.of(self.panel(0.0), 1)).any()

    def test_many_faint_correlations_taken_as_one_doubt_every_link(self) -> None:
        rng = np.random.default_rng(1)
        values = rng.normal(size=(3000, 8)) + 0.2 * rng.normal(size=(3000, 1))
        windows_of_it = Windows.of(Panel.of(values), 1)
        found = _move_together(windows_of_it)[..., 0]
        np.testing.assert_array_equal(found, ~np.eye(8, dtype=bool))
        with using(Thresholds.of({"grades": {"firm_together": 1e-200}})):
            assert not _move_together(windows_of_it).any()

    @pytest.mark.parametrize(("columns", "is_doubted"), [(2, False), (3, True)])
    def test_one_pair_is_not_taken_as_many(self, columns, is_doubted) -> None:
        rng = np.random.default_rng(2)
        values = rng.normal(size=(6000, columns))
        values[:, 1] += 0.08 * values[:, 0]  # too faint for a pair, clear for all taken as one
        found = _move_together(Windows.of(Panel.of(values), 1))
        assert found.any() == is_doubted

    def test_a_pair_is_told_at_a_level_shared_among_all_pairs(self) -> None:
        own = Windows.of(self.panel(0.12), 1)
        past, now = own.whole().past[:, 0].astype(float), own.whole().target.astype(float)
        left = sm.OLS(now, sm.add_constant(past)).fit().resid
        products = left[:, 0] * left[:, 1]
        p_value = 2 * norm.sf(abs(products.sum()) / np.sqrt((products**2).sum()))
        assert abs(np.corrcoef(left[:, 0], left[:, 1])[0, 1]) > 0.1
        for level, is_doubted in ((6.1 * p_value, True), (5.9 * p_value, False)):
            asked = {"grades": {"firm_together": 1e-200}, "diagnosis": {"level": level}}
            with using(Thresholds.of(asked)):
                assert _move_together(own).any() == is_doubted

    @pytest.mark.parametrize(("count", "is_doubted"), [(52, False), (53, True)])
    def test_it_takes_more_than_twice_as_many_windows_as_inputs(self, count, is_doubted) -> None:
        rng = np.random.default_rng(3)
        values = rng.normal(size=(count + 1, 26))
        values[:, 1] = values[:, 0] + 0.01 * values[:, 1]
        with using(Thresholds.of({"diagnosis": {"level": 0.5}})):
            found = _move_together(Windows.of(Panel.of(values), 1))
        assert found.shape == (26, 26, 1)
        assert found.any() == is_doubted

    def test_levels_of_one_label_go_together_without_a_doubt(self) -> None:
        assert not _move_together(labelled_windows()).any()


def test_only_plausible_edges_are_asked_what_else_they_may_be(monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(
        "forecause.edges.certainty.only_surprises", lambda of, mask, *_: asked.append(mask) or mask
    )
    monkeypatch.setattr(
        "forecause.edges.certainty.echoes", lambda of, mask, *_: np.zeros_like(mask)
    )
    q = np.full((2, 2, 2), np.nan)
    q[0, 1], q[1, 0], q[1, 1] = 0.099, 0.1, 0.5
    found = _look_like_something_else(windows(), q)
    np.testing.assert_array_equal(found, q < 0.1)
    np.testing.assert_array_equal(asked[0], q < 0.1)


def test_a_grade_begins_at_its_bound() -> None:
    bounds = THRESHOLDS.grades
    assert [grade(bounds.firm), grade(bounds.likely)] == ["firm", "likely"]
    assert [grade(bounds.firm - 1e-9), grade(bounds.likely - 1e-9)] == ["likely", "tentative"]


def test_edges_are_graded_in_every_domain_and_a_doubt_makes_them_tentative() -> None:
    edges = pd.DataFrame(
        [("a", "b", 1, 1.0, 0.99), ("b", "a", 1, 0.5, 0.99)],
        columns=["source", "target", "lag", "score", "certainty"],
    )
    part = LaggedGraph(("a", "b"), 1, edges)
    plain = LaggedGraph.from_edges(["a", "b"], 1, [("a", "b", 1)])
    graph = LaggedGraph(("a", "b"), 1, edges, domains={"one": part, "two": plain})
    graded = with_grades(graph, lambda part: part.edges["source"] == "b")
    for own in (graded, graded.domains["one"]):
        assert own.edges["grade"].tolist() == ["firm", "tentative"]
    assert "grade" not in graded.domains["two"].edges
