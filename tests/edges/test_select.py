import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, norm

from forecause.config.thresholds import THRESHOLDS
from forecause.edges.select import (
    accepted_share,
    discounted,
    false_discovery,
    global_top_k,
    target_shares,
    top_k,
    uniform,
)
from forecause.errors import InputError
from forecause.forecast.input_tests.protocol import link_q_values, own_past_weights
from forecause.graph.axes import AXES
from forecause.regression.p_values import adjusted_p_values


def scores_of(values):
    values = np.asarray(values, dtype=float)
    names = [f"v{i}" for i in range(len(values))]
    lags = np.arange(1, values.shape[2] + 1)
    return xr.DataArray(values, dims=AXES, coords={"target": names, "source": names, "lag": lags})


RANDOM = scores_of(np.random.default_rng(0).random((3, 3, 2)))


@given(st.integers(1, 6))
def test_top_k_gives_every_target_its_k_strongest(k):
    chosen = top_k(RANDOM, k)
    assert (chosen.sum(["source", "lag"]) == k).all()
    for target in range(3):
        kept, left = RANDOM[target].where(chosen[target]), RANDOM[target].where(~chosen[target])
        assert float(kept.min()) > float(left.max(skipna=True)) or k == 6


@given(st.integers(1, 18))
def test_global_top_k_takes_the_k_strongest_of_all(k):
    chosen = global_top_k(RANDOM, k)
    assert int(chosen.sum()) == k
    assert set(RANDOM.values[chosen.values]) == set(np.sort(RANDOM.values.ravel())[-k:])


def test_k_must_fit():
    with pytest.raises(InputError, match="k must lie between 1 and 6"):
        top_k(RANDOM, 7)
    with pytest.raises(InputError, match="k must lie between 1 and 18"):
        global_top_k(RANDOM, 0)


def test_uniform_takes_what_is_above_an_equal_share():
    scores = scores_of([[[6.0], [4.0]], [[1.0], [1.0]]])
    # shares 0.6, 0.4 and 0.5, 0.5 against 1 / 2
    assert uniform(scores).values.ravel().tolist() == [True, False, False, False]


def test_a_target_without_any_relevance_gets_no_edges():
    scores = scores_of(np.zeros((2, 2, 2)))
    p_values = scores.copy(data=np.full(scores.shape, 1e-9))
    assert not uniform(scores).any()
    assert not false_discovery(scores, p_values, 0.1, least_share=0.01).any()


def test_false_discovery_is_benjamini_hochberg_with_a_floor_on_the_share():
    rng = np.random.default_rng(1)
    p_values = RANDOM.copy(data=rng.beta(0.3, 1, RANDOM.shape))
    q_values = false_discovery_control(p_values.values, axis=None).reshape(RANDOM.shape)
    adjusted = RANDOM.copy(data=adjusted_p_values(p_values.values))
    np.testing.assert_array_equal(false_discovery(RANDOM, adjusted, 0.1), q_values <= 0.1)
    shares = RANDOM.values / RANDOM.values.sum((1, 2), keepdims=True)
    floored = false_discovery(RANDOM, adjusted, 0.1, least_share=0.15)
    np.testing.assert_array_equal(floored, (q_values <= 0.1) & (shares >= 0.15))


def test_the_false_discovery_rate_must_be_a_share():
    with pytest.raises(InputError, match="between 0 and 1, found 1"):
        false_discovery(RANDOM, RANDOM, 1.0)


def test_a_score_is_the_relevance_as_far_as_chance_is_excluded():
    relevance = scores_of([[[0.5, 0.4, 0.3, 0.2]]])
    p_values = scores_of([[[1e-9, 1e-6, 1e-3, np.nan]]])
    found = discounted(relevance, p_values).values.ravel()
    np.testing.assert_allclose(found[:3], [0.5, 0.4, 0.3 / 16])
    assert 0 < found[3] < 1e-5  # untested: still ranked by its relevance, behind the others


@given(st.lists(st.floats(0, 1), min_size=18, max_size=18))
def test_a_smaller_p_value_never_lowers_a_score(p_values):
    p_values = scores_of(np.reshape(p_values, (3, 3, 2)))
    assert (discounted(RANDOM, p_values / 10) >= discounted(RANDOM, p_values)).all()


def test_weights_favour_the_own_last_value_and_leave_links_between_variables_alone():
    p_values = np.random.default_rng(1).random((4, 4, 3)) ** 3
    plain, weighted = (
        link_q_values(p_values),
        link_q_values(p_values, own_past_weights(p_values.shape)),
    )
    own = np.eye(4, dtype=bool)
    np.testing.assert_array_equal(weighted[~own], plain[~own])
    weight = THRESHOLDS.edges.own_past_weight
    weights = np.array([weight, 1, 1]) * 3 / (weight + 2)
    weighed = np.minimum(p_values[own] / weights, 1)
    np.testing.assert_allclose(
        weighted[own], false_discovery_control(weighed.ravel()).reshape(weighed.shape)
    )


def test_what_is_not_tested_takes_no_weight():
    p_values = np.random.default_rng(2).random((3, 3, 2))
    p_values[0] = np.nan
    weighted = link_q_values(p_values, own_past_weights(p_values.shape))
    assert np.isnan(weighted[0]).all()
    tested = np.stack([p_values[1, 1], p_values[2, 2]]) / [12 / 7, 2 / 7]
    expected = false_discovery_control(np.minimum(tested, 1).ravel())
    np.testing.assert_allclose(np.stack([weighted[1, 1], weighted[2, 2]]).ravel(), expected)


def tables(effect, links, many=400, seed=0):
    """Two-sided p-values (target, source, lag) of z-values, and which have a mean of `effect`."""
    rng = np.random.default_rng(seed)
    true = np.zeros((10, 10, 5), dtype=bool)
    between = np.argwhere(~np.broadcast_to(np.eye(10, dtype=bool)[..., None], true.shape))
    true[tuple(between[rng.permutation(len(between))[:links]].T)] = True
    for _ in range(many):
        yield 2 * norm.sf(np.abs(rng.standard_normal(true.shape) + effect * true)), true


@pytest.mark.parametrize(("effect", "links"), [(2.5, 25), (3.0, 8), (3.5, 25), (6.0, 4)])
def test_no_more_is_false_than_was_accepted(effect, links):
    false, accepted = [], []
    for p_values, true in tables(effect, links):
        q = link_q_values(p_values)
        accepted.append(accepted_share(q, 0.05, 0.1))
        chosen = (q <= accepted[-1]) & ~np.eye(10, dtype=bool)[..., None]
        false.append((chosen & ~true).sum() / max(chosen.sum(), 1))
    assert np.mean(false) <= 1.15 * np.mean(accepted)


def test_weak_links_are_met_with_the_looser_level_and_strong_ones_with_the_usual():
    weak = [accepted_share(link_q_values(p), 0.05, 0.1) for p, _ in tables(3.0, 25, many=50)]
    strong = [accepted_share(link_q_values(p), 0.05, 0.1) for p, _ in tables(6.0, 25, many=50)]
    assert np.mean(weak) > 0.095
    assert np.mean(strong) < 0.055


def test_a_table_without_links_gets_one_no_more_often_than_the_usual_level_says():
    drawn = []
    for p_values, _ in tables(0.0, 0, many=1000):
        q = link_q_values(p_values)[~np.eye(10, dtype=bool)]
        drawn.append((q <= accepted_share(link_q_values(p_values), 0.05, 0.1)).any())
    assert np.mean(drawn) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1000)


def test_a_negative_score_takes_nothing_from_the_shares_of_others():
    scores = xr.DataArray([[[3.0], [-5.0]], [[1.0], [1.0]]], dims=AXES)
    np.testing.assert_allclose(target_shares(scores).values[:, :, 0], [[1, 0], [0.5, 0.5]])


def test_a_cause_of_a_slow_store_matters_although_the_own_past_has_nearly_all_relevance():
    scores = scores_of(np.zeros((3, 3, 1)))
    scores.values[0, :, 0] = [1.0, 0.001, 0.0001]  # of the store: itself, its inflow, another
    significant = scores.copy(data=np.zeros(scores.shape))
    chosen = false_discovery(scores, significant, 0.05, 0.003)
    assert chosen.values[0, :, 0].tolist() == [True, True, False]


def one_target(*shares, q=None):
    """Scores and q-values of one target of a table of three variables, itself first."""
    scores = scores_of(np.ones((3, 3, 1)))
    scores.values[0, :, 0] = shares
    q_values = scores.copy(data=np.ones(scores.shape))
    q_values.values[0, :, 0] = 0.0 if q is None else q
    return scores, q_values


def test_a_candidate_at_the_level_and_at_the_least_share_is_taken():
    scores, q_values = one_target(2.0, 1.0, 1.0, q=[0.05, 0.05, 0.0501])
    found = false_discovery(scores, q_values, 0.05, least_share=0.25)
    assert found.values[0, :, 0].tolist() == [True, True, False]
    assert not found.values[1:].any()
    found = false_discovery(scores, q_values, 0.05, least_share=0.2501)
    assert found.values[0, :, 0].tolist() == [True, False, False]


@pytest.mark.parametrize(("own", "is_taken"), [(0.89, False), (0.91, True)])
def test_only_where_the_own_past_nearly_tells_all_a_faint_cause_counts(own, is_taken):
    assert THRESHOLDS.edges.nearly_known == 0.9
    scores, q_values = one_target(own, 1 - own, 0.0)
    found = false_discovery(scores, q_values, 0.05, least_share=0.5)
    assert found.values[0, :, 0].tolist() == [True, is_taken, False]


@pytest.mark.parametrize(("share", "is_taken"), [(0.2, True), (0.19, False)])
def test_and_only_a_cause_that_has_much_of_what_the_others_have(share, is_taken):
    assert THRESHOLDS.edges.least_share_beside_own == 0.2
    scores, q_values = one_target(99.0, share, 1 - share)
    found = false_discovery(scores, q_values, 0.05, least_share=0.5)
    assert found.values[0, :, 0].tolist() == [True, is_taken, True]


@pytest.mark.parametrize("fdr", [0.0, 1.0, -0.1, 1.1])
def test_a_rate_that_is_no_share_is_refused(fdr):
    with pytest.raises(InputError, match="between 0 and 1"):
        false_discovery(RANDOM, RANDOM, fdr)


def test_links_are_weak_where_fewer_than_their_share_pass_the_strict_level():
    bounds = THRESHOLDS.edges
    assert bounds.firm_share == 0.75

    def level(*q):
        table = np.full((3, 3, 1), 0.0)  # own pasts, however sure, have no say
        table[~np.eye(3, dtype=bool)] = np.array([*q, *[1.0] * (6 - len(q))])[:, None]
        return accepted_share(table, 0.05, 0.1)

    firm, weak, beyond = bounds.firm_q, 0.05, 0.06
    assert level(firm, firm, firm, weak) == 0.05
    assert level(firm, firm, weak) == 0.1
    assert level(firm, firm, firm, weak, beyond, beyond) == 0.05
    assert level(1.01 * firm, 1.01 * firm) == 0.1
    assert level() == 0.05


def test_shares_add_up_to_one_or_are_none():
    scores = scores_of([[[3.0], [1.0]], [[0.0], [-1.0]]])
    np.testing.assert_allclose(target_shares(scores).values[..., 0], [[0.75, 0.25], [0, 0]])


def test_among_equals_the_first_are_taken():
    equal = scores_of(np.ones((2, 2, 2)))
    assert top_k(equal, 2).values.reshape(2, -1).tolist() == [[True, True, False, False]] * 2
    assert np.flatnonzero(global_top_k(equal, 3).values.ravel()).tolist() == [0, 1, 2]


def test_what_chance_may_explain_is_ranked_by_a_millionth_of_its_relevance():
    found = discounted(scores_of([[[0.5, 2.0]]]), scores_of([[[1.0, 0.9]]])).values.ravel()
    np.testing.assert_allclose(found[0], 0.5e-6)
    power = (-np.log10(0.9) / THRESHOLDS.edges.clear_powers) ** THRESHOLDS.edges.discount
    np.testing.assert_allclose(found[1], 2 * max(power, 1e-6))
