"""Pretraining: what it learns, that it continues, and what it refuses."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import forecause as fc
from forecause.errors import InputError
from forecause.networks.pretrained.network import ContextNetwork, load_network
from forecause.networks.settings import ContextSettings
from forecause_bench import pretraining as module
from forecause_bench.pretraining import check, pretrain
from forecause_bench.pretraining.systems import (
    FIRST_SEED,
    SEEDS,
    draw_shape,
    draw_systems,
    windows_of,
)
from systems import CHAIN_EDGES, chain, edge_set

TINY = {
    "variables": 3,
    "max_lag": 2,
    "systems": 4,
    "repeats": 4,
    "network": {"width": 16, "heads": 2, "layers": 1, "node_width": 4},
}


@pytest.fixture(autouse=True)
def small_check(monkeypatch):
    """The final check simulates systems too; here a few small ones are enough."""
    monkeypatch.setattr(module, "CHECKED_SHAPES", ((2, 3),))
    monkeypatch.setattr(module, "CHECKED_SYSTEMS", 4)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrained") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHECKED_SHAPES", ((2, 3),))
        patch.setattr(module, "CHECKED_SYSTEMS", 4)
        record = pretrain(folder, rounds=6, **TINY)
    return folder, record


def test_a_short_run_forecasts_new_systems_better_than_before_it_and_than_the_mean(trained):
    _, record = trained
    untrained = check(ContextNetwork(ContextSettings(**TINY["network"])))
    for count in ("100", "200"):
        assert record["check"][count]["network"] < untrained[count]["network"]
        assert record["check"][count]["network"] < 1.0  # what the mean gets
    assert record["systems"] == 24
    assert record["steps"] == 24


def test_a_stopped_run_continues_where_it_was(trained, tmp_path, monkeypatch):
    whole, _ = trained
    started = []
    round_of = module.Run.round

    def stop_after_three(run, share):
        started.append(run.done.rounds)
        if len(started) == 4:
            run.save()
            raise KeyboardInterrupt
        round_of(run, share)

    monkeypatch.setattr(module.Run, "round", stop_after_three)
    for _ in range(2):
        try:
            pretrain(tmp_path / "out", rounds=6, **TINY)
        except KeyboardInterrupt:
            continue
    assert started == [0, 1, 2, 3, 3, 4, 5]
    one, two = (load_file(f / "weights.safetensors") for f in (whole, tmp_path / "out"))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_finished_run_trains_no_further(trained):
    folder, record = trained
    before = load_network(folder).state_dict()
    assert pretrain(folder, rounds=6, **TINY)["rounds"] == record["rounds"]
    assert all(torch.equal(w, before[n]) for n, w in load_network(folder).state_dict().items())


def test_another_seed_gives_other_weights(trained, tmp_path):
    pretrain(tmp_path, rounds=1, seed=1, **TINY)
    one, other = load_network(trained[0]), load_network(tmp_path)
    assert not torch.equal(one.about.weight, other.about.weight)


def test_systems_of_pretraining_are_not_those_of_benchmarks(monkeypatch, tmp_path):
    seeds = []

    def spy(count, shape, first_seed, rng):
        seeds.extend(range(first_seed, first_seed + count))
        return draw_systems(count, shape, first_seed, rng)

    monkeypatch.setattr(module, "draw_systems", spy)
    run = module.Run(module.PretrainSettings(seed=1, **TINY), tmp_path)
    for _ in range(2):
        run.round(0.0)
        run.done.rounds += 1
    assert seeds == list(range(FIRST_SEED + SEEDS, FIRST_SEED + SEEDS + 8))


def test_series_are_standardised_and_windows_are_their_stretches():
    rng = np.random.default_rng(0)
    shapes = {draw_shape(2, 3, rng) for _ in range(100)}
    assert shapes == {(lag, variables) for lag in (1, 2) for variables in (2, 3)}
    series = draw_systems(2, (2, 3), FIRST_SEED, rng)
    assert torch.allclose(series.mean(1), torch.zeros(2, 3), atol=1e-4)
    assert torch.allclose(series.std(1), torch.ones(2, 3), atol=1e-3)
    window = windows_of(series, 2)
    assert torch.equal(window[1, 7], series[1, 7:10])


def test_other_settings_and_foreign_files_are_refused(trained, tmp_path):
    with pytest.raises(InputError, match="other settings"):
        pretrain(trained[0], rounds=6, **(TINY | {"max_lag": 1}))
    (tmp_path / "checkpoint.safetensors").write_text("hello")
    with pytest.raises(InputError, match="Expected a checkpoint of forecause pretrain"):
        pretrain(tmp_path, rounds=1, **TINY)
    with pytest.raises(InputError, match="is a file"):
        pretrain(tmp_path / "checkpoint.safetensors", rounds=1, **TINY)
    with pytest.raises(InputError, match="variables=1"):
        pretrain(tmp_path / "new", rounds=1, variables=1)
    with pytest.raises(InputError, match="more than 0 minutes"):
        pretrain(tmp_path / "new", minutes=0)


def test_discover_starts_from_what_the_command_wrote(command, tmp_path):
    out, data = tmp_path / "pretrained", tmp_path / "data.npy"
    np.save(data, chain(800))
    code, text, _ = command(
        "pretrain", out, "--rounds", 2, "--variables", 3, "--max-lag", 2, "--quiet"
    )  # fmt: skip
    assert code == 0
    assert "200 rows: network 0." in text
    assert json.loads((out / "pretraining.json").read_text())["systems"] == 32
    code, text, _ = command(
        "discover", data, "--max-lag", 2, "--forecaster", "pretrained", "--weights", out,
        "--preset", "quick", "--out", tmp_path / "run", "--quiet",
    )  # fmt: skip
    assert code == 0
    found = fc.load(tmp_path / "run")
    names = dict(zip(found.graph.variables, "abc", strict=True))
    edges = {(names[s], names[t], lag) for s, t, lag in edge_set(found.graph)}
    assert edges == CHAIN_EDGES
    assert found.forecaster.kind == "pretrained"
