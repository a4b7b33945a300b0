import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from forecause.edges.select import discounted, false_discovery, global_top_k, top_k, uniform
from forecause.errors import InputError
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
