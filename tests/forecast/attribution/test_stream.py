import sys

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from forecause.forecast.attribution.relevance import RelevanceStream, relevance
from forecause.forecast.forecaster import FitData
from forecause.forecast.linear import Linear

SIGNED = np.random.default_rng(0).normal(size=(40, 2, 3, 2))


def collect(parts, power=2):
    stream = RelevanceStream(power)
    for part in parts:
        stream.add(part)
    return stream.result(["a", "b"])


@given(cuts=st.lists(st.integers(1, 39), max_size=5, unique=True))
@settings(max_examples=25)
def test_how_samples_are_split_into_batches_does_not_matter(cuts):
    parts = np.split(SIGNED, sorted(cuts))
    whole, split = collect([SIGNED]), collect(parts)
    for name in whole:
        np.testing.assert_allclose(whole[name], split[name], atol=1e-12)


def test_the_statistics_are_those_of_all_samples_at_once():
    found = collect([SIGNED], power=2)
    signed = SIGNED[:, :, ::-1].transpose(0, 1, 3, 2)  # (sample, target, source, lag)
    energy = signed**2
    np.testing.assert_allclose(found["relevance"], energy.mean(0))
    np.testing.assert_allclose(found["sd"], energy.std(0))
    np.testing.assert_allclose(found["effect"], signed.mean(0))
    np.testing.assert_allclose(found["sign_consistency"], np.abs(np.sign(signed).mean(0)))
    ranks = rankdata(energy.reshape(40, 2, -1), axis=2).reshape(energy.shape)
    np.testing.assert_allclose(found["mean_rank"], ranks.mean(0))
    np.testing.assert_allclose(found["sd_rank"], ranks.std(0))
    assert found["relevance"].dims == ("target", "source", "lag")
    assert found["lag"].values.tolist() == [1, 2, 3]


def test_power_one_is_the_mean_absolute_value():
    found = collect([SIGNED], power=1)
    expected = np.abs(SIGNED).mean(0)[:, ::-1].transpose(0, 2, 1)
    np.testing.assert_allclose(found["relevance"], expected)


def test_a_straight_model_is_read_from_one_window_as_from_all(chain_windows):
    model = Linear().build(chain_windows.shape)
    model.fit(FitData(chain_windows, chain_windows, 0))
    found = relevance(model, chain_windows)
    assert found.attrs["samples"] == 1
    stream = RelevanceStream(power=2)
    for batch in chain_windows.batches(512):
        stream.add(model.jacobian(batch.past))
    expected = stream.result(chain_windows.panel.variables)
    for name in ("relevance", "effect", "sign_consistency", "mean_rank"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6)
    varying = relevance(model, chain_windows, "input-gradient")
    assert varying.attrs["samples"] == len(chain_windows)


def test_of_very_many_candidates_fewer_windows_are_read(chain_windows, monkeypatch):
    monkeypatch.setattr(sys.modules[RelevanceStream.__module__], "READ_NUMBERS", 18 * 220)
    model = Linear().build(chain_windows.shape)
    assert relevance(model, chain_windows, "input-gradient").attrs["samples"] == 220


def test_of_many_candidates_every_few_windows_are_ranked(monkeypatch):
    monkeypatch.setattr(sys.modules[RelevanceStream.__module__], "MOST_RANKED", 5)  # 12 candidates
    stream = RelevanceStream(2)
    stream.add(SIGNED)
    found = stream.result(["a", "b"])
    candidates = 6  # of a target
    np.testing.assert_allclose(found["mean_rank"].mean(("source", "lag")), (candidates + 1) / 2)
    assert stream.counts["mean_rank"] == len(SIGNED[::3])
    np.testing.assert_allclose(found["relevance"], collect([SIGNED])["relevance"])
