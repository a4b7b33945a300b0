"""From tests and relevance to a graph: what counts where there are domains, rules and few rows."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from fitted import fit_forecaster
from forecause.config import EdgeOptions
from forecause.config.thresholds import THRESHOLDS
from forecause.data import Panel, Windows
from forecause.edges import reading
from forecause.edges.knowledge import Candidates
from forecause.edges.reading import (
    ReadingContext,
    Statistics,
    choose_edges,
    keep_tested,
    read_relevance,
    usual_fdr,
    with_final_fdr,
)
from forecause.forecast.attribution import relevance
from forecause.forecast.input_tests.protocol import (
    InputTests,
    link_q_values,
    own_past_weights,
)
from forecause.graph.axes import labelled_together
from systems import chain

ABC = ("a", "b", "c")


def context_of(max_lag=2, fdr=0.02, fdr_if_weak=0.02, **options) -> ReadingContext:
    asked = EdgeOptions(**options)
    return ReadingContext(asked, Candidates.of(asked, ABC, max_lag), fdr, fdr_if_weak)


def panel_of(rows=600, domains=1) -> Panel:
    panel = Panel.from_arrays([chain(rows)], list(ABC))
    if domains == 1:
        return panel
    names = tuple(f"d{i}" for i in range(domains))
    return panel.with_domain(np.arange(rows) * domains // rows, names)


@pytest.fixture(scope="module")
def linear(chain_windows):
    return fit_forecaster("linear", chain_windows)


def some_tests(seed=0, decided=("linear",) * 3, **more) -> InputTests:
    rng = np.random.default_rng(seed)
    return InputTests(
        rng.uniform(size=(3, 3, 2)) ** 6, rng.uniform(size=(3, 3, 2)), decided, **more
    )


def statistics(p_value=None, **more) -> xr.Dataset:
    """Statistics of every candidate that agree with each other in shape alone."""
    rng = np.random.default_rng(1)
    shape = (3, 3, 2)
    names = ("relevance", "effect", "stability", "certainty", "mean_rank", "sd_rank")
    arrays = {name: rng.uniform(0.1, 1, size=shape) for name in (*names, "sign_consistency")}
    arrays["p_value"] = rng.uniform(size=shape) ** 8 if p_value is None else p_value
    arrays["q_value"] = link_q_values(arrays["p_value"])
    return labelled_together(arrays | more, ABC)


class TestAcceptedShare:
    USUAL = THRESHOLDS.edges

    def test_many_windows_are_met_with_the_strict_share(self):
        assert usual_fdr(self.USUAL.few_windows, 10**6) == (self.USUAL.usual_fdr,) * 2

    def test_with_few_a_larger_share_is_accepted_of_weak_links_where_power_is_lost(self):
        few = self.USUAL.few_windows - 1
        plain, weak = self.USUAL.usual_fdr_few, self.USUAL.usual_fdr_weak
        enough = THRESHOLDS.tests.allowance_below
        assert usual_fdr(few, few) == (plain, weak)  # a window for each input
        assert usual_fdr(few, 10 * few) == (plain, weak)
        assert usual_fdr(few, int(few / enough) - 1) == (plain, plain)  # no power is lost
        half = int(few / enough**0.75)  # half way on the scale of logarithms
        assert usual_fdr(few, half) == (plain, pytest.approx((plain + weak) / 2, abs=0.006))

    def test_the_looser_share_is_that_of_links_which_are_weak(self):
        weak = np.full((3, 3, 2), 1.0)
        weak[0, 1, 0] = 0.015
        known = Statistics(statistics(q_value=weak), ("linear",) * 3)
        context = context_of(fdr=0.02, fdr_if_weak=0.1)
        assert with_final_fdr(context, known).fdr == 0.1
        strong = np.where(weak < 1, 1e-6, 1.0)
        assert with_final_fdr(context, Statistics(statistics(q_value=strong), ())).fdr == 0.02
        counted = replace(context, options=EdgeOptions(select="top-k", k=1))
        assert with_final_fdr(counted, known) is counted


class TestDomains:
    def test_whoever_decided_in_any_domain_is_named_once(self):
        one, two = some_tests(decided=("x", "y", "x")), some_tests(decided=("x", "x", "z"))
        tests = reading.Tests(None, {"one": (None, one), "two": (None, two)})
        assert tests.decided_by == ("x", "y / x", "x / z")
        assert reading.Tests(one).decided_by == ("x", "y", "x")

    def test_an_effect_in_any_domain_counts_with_the_smallest_p_value_times_their_number(self):
        windows = Windows.of(panel_of(domains=2), 2)
        p_values = np.full((3, 3, 2), 0.9), np.full((3, 3, 2), 0.7)
        p_values[0][0, 1, 0], p_values[1][0, 1, 0] = 0.001, 0.3
        parts = [statistics(p) for p in p_values]
        parts[1]["certainty"] += 0.1
        found = reading._over_domains(statistics(), parts, windows)
        expected = np.where(p_values[0] == 0.001, 0.002, 1.0)
        np.testing.assert_allclose(found["p_value"], expected)
        q_values = link_q_values(expected, own_past_weights((3, 3, 2)))
        np.testing.assert_allclose(found["q_value"], q_values)
        np.testing.assert_allclose(found["certainty"], parts[1]["certainty"])
        np.testing.assert_allclose(found["stability"], parts[0]["stability"])
        np.testing.assert_allclose(found["relevance"], statistics()["relevance"])
        assert "doubtful" not in found

    def test_of_what_learners_judged_the_kindest_domain_counts_and_any_doubt_holds(self):
        windows = Windows.of(panel_of(domains=2), 2)
        rng = np.random.default_rng(2)

        def learned():
            least, doubt = rng.uniform(size=(3, 3, 2)), rng.uniform(size=(3, 3, 2)) < 0.3
            own = statistics(least_share=least, doubtful=doubt)
            return own.assign(relevance=own["relevance"] * rng.uniform(0, 2, size=(3, 3, 2)))

        one, two, plain = learned(), learned(), statistics()
        found = reading._over_domains(plain, [one, plain, two], windows)
        largest = np.maximum(one["relevance"], two["relevance"])
        np.testing.assert_allclose(found["relevance"], np.maximum(largest, plain["relevance"]))
        np.testing.assert_allclose(
            found["least_share"], np.minimum(one["least_share"], two["least_share"])
        )
        np.testing.assert_array_equal(found["doubtful"], one["doubtful"] | two["doubtful"])

    @pytest.mark.parametrize(("rows", "kept"), [(12, ["d0"]), (13, ["d0", "d1"])])
    def test_a_domain_with_fewer_than_two_windows_for_each_input_has_no_graph(self, rows, kept):
        assert THRESHOLDS.edges.windows_per_input == 2.0
        domain = np.r_[np.zeros(100), np.ones(rows - 1)].astype(np.int64)
        panel = Panel.from_arrays([chain(99 + rows)], list(ABC)).with_domain(domain, ("d0", "d1"))
        windows = Windows.of(panel, 2)  # of 6 inputs
        assert list(reading._domains_with_enough(windows, context_of())) == kept
        counted = context_of(select="uniform")
        assert list(reading._domains_with_enough(windows, counted)) == ["d0", "d1"]
        assert reading._domains_with_enough(Windows.of(panel_of(), 2), context_of()) == {}

    def test_relevance_is_read_in_every_domain_and_tests_decide_in_it(self, linear):
        windows = Windows.of(panel_of(domains=2), 2)
        own = {"d0": windows.in_domain(0), "d1": windows.in_domain(1)}
        tests = {name: some_tests(seed) for seed, name in enumerate(own)}
        both = reading.Tests(None, {name: (own[name], tests[name]) for name in own})
        found = read_relevance(linear.forecaster, windows, both, context_of())
        assert list(found.domains) == ["d0", "d1"]
        for name, (part, decided) in found.domains.items():
            np.testing.assert_array_equal(part["p_value"], tests[name].p_value)
            assert decided == tests[name].decided_by
        expected = np.minimum(2 * np.minimum(tests["d0"].p_value, tests["d1"].p_value), 1)
        np.testing.assert_allclose(found.whole["p_value"], expected)
        graph = choose_edges(found, context_of())
        assert set(graph.domains) == {"d0", "d1"}
        assert "domains" in graph.edges


class TestRelevance:
    def test_it_is_read_from_so_many_windows_of_a_seed(self, linear, chain_windows):
        context = context_of(readout="input-gradient")
        forecaster = linear.forecaster

        def read(most=100, **changes):
            own = replace(context, **changes)
            return reading._relevance(forecaster, chain_windows, most, own, ())

        sample = chain_windows.sample(100, np.random.default_rng(0))
        expected = relevance(forecaster, sample, "input-gradient")
        xr.testing.assert_equal(read(), expected)
        assert read(effort=0.5).attrs["samples"] == 50
        assert read(effort=1e-9).attrs["samples"] == 1
        assert not read(seed=1)["relevance"].equals(read()["relevance"])

    def test_a_forbidden_edge_has_none(self, linear, chain_windows):
        read = reading._relevance(
            linear.forecaster, chain_windows, 50, context_of(forbid=("a -> b",)), ()
        )
        assert not read["relevance"].sel(source="a", target="b").any()
        assert (read["relevance"].sel(source="b") > 0).all()

    def test_each_domain_is_read_from_its_share_of_the_windows_but_not_from_too_few(
        self, linear, monkeypatch
    ):
        asked = []

        def noted(forecaster, windows, most, context, parts):
            asked.append(most)
            return relevance(forecaster, windows)

        monkeypatch.setattr(reading, "_relevance", noted)
        windows = Windows.of(panel_of(domains=3), 2)
        own = {name: (windows.in_domain(i), some_tests()) for i, name in enumerate(("d0", "d1"))}
        read_relevance(linear.forecaster, windows, reading.Tests(None, own), context_of())
        assert asked == [2000, 666, 666]
        monkeypatch.setattr(reading, "LEAST_READ", 700)
        read_relevance(linear.forecaster, windows, reading.Tests(None, own), context_of())
        assert asked[3:] == [2000, 700, 700]

    def test_of_parts_it_is_what_they_agree_on(self, linear, chain_windows):
        parts = [fit_forecaster("linear", p).forecaster for p in chain_windows.interleaved(2)]
        read = reading._relevance(linear.forecaster, chain_windows, 99, context_of(), parts)
        slopes = [part.jacobian(chain_windows.draw(np.arange(1)).past)[0] for part in parts]
        expected = (slopes[0] * slopes[1])[:, ::-1].swapaxes(1, 2)
        np.testing.assert_allclose(read["relevance"], expected, rtol=1e-4, atol=1e-9)

    def test_what_a_learner_tells_counts_before_gradients_which_break_ties(self, chain_windows):
        own = np.random.default_rng(0).uniform(size=(3, 3, 2))
        own[0, 0, 0] = np.nan  # gradients tell
        gradients = statistics()["relevance"] * 7
        read = statistics().assign(relevance=gradients)
        found = reading._statistics(read, chain_windows, some_tests(relevance=own), context_of())[
            "relevance"
        ].values
        largest = gradients.values.max((1, 2), keepdims=True)
        expected = own + 1e-6 * gradients.values / largest
        expected[0, 0, 0] = gradients.values[0, 0, 0]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


class TestQValues:
    @pytest.mark.parametrize(("more", "is_weighted"), [(-1, True), (0, False)])
    def test_with_few_windows_the_own_last_value_is_favoured(self, more, is_weighted):
        rows = THRESHOLDS.edges.few_windows + more + 2
        windows = Windows.of(panel_of(rows), 2)
        p_values = statistics()["p_value"]
        weights = own_past_weights(p_values.shape) if is_weighted else None
        expected = link_q_values(p_values.values, weights)
        np.testing.assert_allclose(reading._q_values(p_values, windows), expected)
        plain = link_q_values(p_values.values)
        assert np.allclose(expected, plain) != is_weighted


class TestChosenEdges:
    def graph(self, known=None, decided=("x", "y", "z"), **options):
        known = statistics() if known is None else known
        return choose_edges(Statistics(known, decided), context_of(**options))

    def chosen(self, name, count, **options):
        """Whether the edges of a rule are those with the largest values of one statistic."""
        known = statistics()
        ranked = known[name] if isinstance(name, str) else name(known)
        graph = self.graph(known, **options)
        least = np.sort(ranked.values.ravel())[-count]
        np.testing.assert_array_equal(graph.adjacency.values, ranked.values >= least)

    def test_a_rule_ranks_by_relevance_or_by_rank(self):
        self.chosen("relevance", 4, select="global-top-k", k=4)
        self.chosen("mean_rank", 4, select="global-top-k", k=4, by="rank")
        self.chosen(
            lambda known: known["mean_rank"] / known["sd_rank"],
            4, select="global-top-k", k=4, by="rank/sd",
        )  # fmt: skip

    def test_a_rank_that_never_varies_counts_most(self):
        known = statistics()
        known["sd_rank"][2, 1, 0] = 0.0
        graph = self.graph(known, select="global-top-k", k=1, by="rank/sd")
        assert graph.edges[["source", "target", "lag"]].values.tolist() == [["b", "c", 1]]

    def test_without_a_number_one_edge_is_taken(self):
        assert len(self.graph(select="global-top-k")) == 1
        assert len(self.graph(select="top-k")) == 3

    def test_tested_edges_pass_the_level_and_matter(self):
        known = statistics()
        graph = self.graph(known)
        shares = known["relevance"] / known["relevance"].sum(["source", "lag"])
        least = THRESHOLDS.edges.least_share
        expected = (known["q_value"] <= 0.02) & (shares >= least)
        np.testing.assert_array_equal(graph.adjacency, expected)
        bound = known.assign(least_share=known["relevance"] * 0 + 1.0)
        assert len(self.graph(bound)) == 0

    def test_an_edge_has_its_details_and_who_decided(self):
        known = statistics(doubtful=np.random.default_rng(3).uniform(size=(3, 3, 2)) < 0.5)
        known["effect"] = known["effect"] - 0.5
        known["effect"][0, 0, 0] = np.nan
        graph = self.graph(known)
        shares = known["relevance"] / known["relevance"].sum(["source", "lag"])
        assert len(graph) > 2
        for edge in graph.edges.to_dict("records"):
            place = {name: edge[name] for name in ("target", "source", "lag")}
            own = known.sel(place)
            assert edge["decided_by"] == {"a": "x", "b": "y", "c": "z"}[edge["target"]]
            assert edge["confidence"] == pytest.approx(1 - float(own["q_value"]))
            assert edge["share"] == pytest.approx(float(shares.sel(place)))
            assert edge["doubtful"] == bool(own["doubtful"])
            effect = float(own["effect"])
            assert edge["sign"] == (0 if np.isnan(effect) else np.sign(effect))
            for name in reading.EDGE_DETAILS:
                assert edge[name] == pytest.approx(float(own[name]))
        counted = self.graph(known, select="uniform")
        assert set(counted.edges["decided_by"]) == {"uniform"}
        assert "doubtful" not in self.graph().edges

    def test_forbidden_edges_are_left_out_and_required_ones_put_in(self):
        graph = self.graph(select="global-top-k", k=18, forbid=("a -> b",), require=("c -> a @ 2",))
        assert len(graph) == 16
        assert not graph.adjacency.sel(source="a", target="b").any()
        few = self.graph(select="global-top-k", k=1, require=("c -> a @ 2",))
        assert bool(few.adjacency.sel(source="c", target="a", lag=2))
        assert len(few) <= 2


class TestKeeping:
    """Which forecaster a target keeps once tests have decided."""

    def fitted(self, is_auto=True):
        kept = []
        return kept, SimpleNamespace(
            is_auto=is_auto, keeping=lambda labels, products: kept.append((labels, products))
        )

    def test_every_column_keeps_what_decided_about_its_variable(self):
        kept, fitted = self.fitted()
        tests = some_tests(decided=("x", "y", "z"), products={1: (0, 2)})
        keep_tested(fitted, reading.Tests(tests), SimpleNamespace(of_column=np.array([0, 1, 1, 2])))
        assert kept == [(["x", "y", "y", "z"], {1: (0, 2)})]

    def test_nothing_changes_where_none_decided_or_one_was_asked_for(self):
        coding = SimpleNamespace(of_column=np.arange(3))
        for is_auto, tests in (
            (False, reading.Tests(some_tests())),
            (True, reading.Tests(some_tests(decided=("", "", "")))),
            (True, reading.Tests(None, {})),
        ):
            kept, fitted = self.fitted(is_auto)
            assert keep_tested(fitted, tests, coding) is fitted
            assert kept == []

    def test_one_target_with_a_decision_is_enough(self):
        kept, fitted = self.fitted()
        tests = reading.Tests(some_tests(decided=("", "y", "")))
        keep_tested(fitted, tests, SimpleNamespace(of_column=np.arange(3)))
        assert kept == [(["", "y", ""], {})]


def test_suspects_are_inputs_with_much_of_a_targets_energy_in_some_candidate(monkeypatch):
    least = THRESHOLDS.tests.suspect_share
    shares = np.zeros((3, 2, 3))  # (target, step, column)
    shares[0, 0, 1], shares[1, 1, 2], shares[2, 1, 0] = least, 0.9 * least, 1.1 * least
    monkeypatch.setattr(reading, "energy_shares", lambda members, windows: shares)
    windows = Windows.of(panel_of(), 2)
    fits = SimpleNamespace(fits=SimpleNamespace(simple_members=()))
    found = reading._suspects(windows, fits, context_of())
    assert np.argwhere(found.values).tolist() == [[0, 1, 1], [2, 0, 0]]  # (target, source, lag - 1)
    nothing = reading._suspects(windows, SimpleNamespace(fits=None), context_of())
    assert not nothing.any()
    assert nothing.dtype == bool
