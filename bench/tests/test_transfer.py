"""The study of pretraining: the same rule for all arms, and weights that must be named."""

import pytest

from forecause.networks.pretrained.network import ContextNetwork, save_network
from forecause.networks.settings import ContextSettings
from forecause.simulation import simulate
from forecause_bench import transfer
from forecause_bench.suites import SUITES


@pytest.fixture
def weights(tmp_path, monkeypatch):
    network = ContextNetwork(ContextSettings(width=8, heads=2, layers=1))
    save_network(network, tmp_path / "weights.safetensors", {})
    monkeypatch.setenv(transfer.WEIGHTS, str(tmp_path))


def test_every_arm_keeps_what_has_more_than_an_even_share(weights, monkeypatch):
    arms = transfer._arms()
    quick = {name: arm for name, arm in arms.items() if name.startswith(("zero-shot", "linear"))}
    monkeypatch.setattr(transfer, "_arms", lambda: quick)
    system = SUITES["pretraining"].cells[0].system
    simulated = simulate(rows=150, seed=0, **system)
    answers = transfer.transfer_arms(simulated.panel, system["max_lag"], 0)
    assert [answer.label for answer in answers] == list(quick)
    for answer in answers:
        scores = answer.graph.scores
        even = scores.sum(("source", "lag")) / (10 * 5)
        assert len(answer.graph) == int((scores > even).sum())
        assert 0 < answer.extra["loss"] < 2


def test_arms_that_were_not_pretrained_get_no_weights(weights):
    for name, settings in transfer._arms().items():
        if settings.kind == "pretrained":
            assert (settings.weights is None) == name.startswith("same"), name


def test_weights_that_are_not_named_are_those_that_come_along(monkeypatch):
    monkeypatch.delenv(transfer.WEIGHTS, raising=False)
    for name, settings in transfer._arms().items():
        if settings.kind == "pretrained":
            assert settings.weights is None
            assert (settings.network is None) != name.startswith("same"), name
