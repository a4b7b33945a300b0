"""Chronos-2 on a tiny model made here: no network, no published weights."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import forecause as fc
from forecause.data import Panel, Windows
from forecause.errors import InputError, MissingExtra
from forecause.forecast.attribution import relevance
from forecause.forecast.attribution.readouts import ATTN_LRP
from forecause.forecast.forecaster import FitData, squared_errors
from forecause.forecast.input_tests.refits import Refits
from forecause.networks import chronos
from forecause.networks.chronos import ChronosModel, checksum
from forecause.networks.network import Network
from forecause.networks.settings import Chronos, TrainingSettings
from systems import edge_set
from tensors import drawn

PATCH, STEPS, VARIABLES = 4, 8, 3
MEDIAN = 1  # among the quantiles below


def make_base(folder: Path, seed: int = 0) -> Path:
    """A small random Chronos-2 model, saved as a published one is."""
    pytest.importorskip("chronos.chronos2")
    from chronos.chronos2 import Chronos2Model
    from chronos.chronos2.config import Chronos2CoreConfig

    config = Chronos2CoreConfig(
        d_model=64,
        d_kv=8,
        d_ff=128,
        num_layers=2,
        num_heads=4,
        initializer_factor=0.5,
        chronos_config={
            "context_length": 64,
            "input_patch_size": PATCH,
            "input_patch_stride": PATCH,
            "output_patch_size": PATCH,
            "quantiles": [0.1, 0.5, 0.9],
            "use_reg_token": True,
            "use_arcsinh": True,
        },
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Chronos2Model(config)
    for weight in model.output_patch_embedding.parameters():
        weight.data *= 0.3  # sinh of a random answer would be huge
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def base_folder(tmp_path_factory) -> Path:
    return make_base(tmp_path_factory.mktemp("chronos") / "base")


@pytest.fixture(scope="module")
def package_model(base_folder):
    """The package's own model, nothing changed."""
    from chronos.chronos2 import Chronos2Model

    return Chronos2Model.from_pretrained(base_folder).eval().requires_grad_(False)


def zero_shot(folder: Path, steps: int = STEPS, seed: int = 0, **settings) -> ChronosModel:
    chosen = Chronos.zero_shot(str(folder)).model_copy(update=settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ChronosModel((steps, VARIABLES), chosen)


def random_past(windows: int = 5, steps: int = STEPS) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(windows, steps, VARIABLES, generator=generator) + 0.5


def package_forecast(model, past: torch.Tensor) -> torch.Tensor:
    """The package's median one step ahead of each window, a call per window."""
    group = torch.zeros(past.shape[2], dtype=torch.long)
    answers = [model(context=window.T, group_ids=group).quantile_preds for window in past]
    return torch.stack(answers)[:, :, MEDIAN, 0]


def test_without_node_embedding_it_forecasts_as_the_package_does(base_folder, package_model):
    past = random_past()
    forecaster = zero_shot(base_folder, node_scale=0.0)
    torch.testing.assert_close(forecaster(past), package_forecast(package_model, past))


def test_a_window_that_fills_no_patch_is_padded_with_missing_values(base_folder, package_model):
    past = random_past(steps=6)
    padded = torch.cat([torch.full((len(past), 2, VARIABLES), torch.nan), past], dim=1)
    forecaster = zero_shot(base_folder, steps=6, node_scale=0.0)
    torch.testing.assert_close(forecaster(past), package_forecast(package_model, padded))
    assert (forecaster.jacobian(past) != 0).all()


def test_gradients_reach_every_variate_of_the_window_and_none_of_another(base_folder):
    forecaster, past = zero_shot(base_folder), random_past(2).requires_grad_()
    first_window = forecaster(past)[0]
    for target in range(VARIABLES):
        (slopes,) = torch.autograd.grad(first_window[target], past, retain_graph=True)
        assert (slopes[0] != 0).all()
        assert (slopes[1] == 0).all()


def test_windows_answer_the_same_together_and_in_parts(base_folder, monkeypatch):
    forecaster, past = zero_shot(base_folder), random_past()
    forecast, slopes = forecaster(past), forecaster.jacobian(past)
    monkeypatch.setattr(chronos, "ROWS_AT_ONCE", 2 * VARIABLES)
    torch.testing.assert_close(forecaster(past), forecast)
    torch.testing.assert_close(forecaster.jacobian(past), slopes, atol=1e-4, rtol=1e-3)


def test_permuting_variates_with_their_embeddings_permutes_the_relevance(base_folder):
    order = [2, 0, 1]
    rows = np.random.default_rng(0).normal(size=(60, VARIABLES))
    names = ["a", "b", "c"]
    forecaster, permuted = zero_shot(base_folder), zero_shot(base_folder)
    permuted.node.data = forecaster.node.data[order]
    found = relevance(Network(forecaster), Windows.of(Panel.from_arrays([rows], names), STEPS))
    panel = Panel.from_arrays([rows[:, order]], [names[i] for i in order])
    moved = relevance(Network(permuted), Windows.of(panel, STEPS)).sel(target=names, source=names)
    np.testing.assert_allclose(moved["relevance"], found["relevance"], rtol=1e-3, atol=1e-7)


def test_only_the_node_embedding_tells_equal_variates_apart(base_folder):
    past = random_past()
    past[..., 1] = past[..., 0]
    nameless = zero_shot(base_folder, node_scale=0.0)(past)
    torch.testing.assert_close(nameless[:, 1], nameless[:, 0])
    named = zero_shot(base_folder)(past)
    assert (named[:, 1] - named[:, 0]).abs().min() > 1e-3
    assert not torch.equal(zero_shot(base_folder, seed=1)(past), named)


def test_the_window_statistics_are_constants_to_the_gradient(base_folder, package_model):
    """The package's gradient is ours and what flows through the mean m and the sd s.

    With f = s_i g(z) + m_i, z = (x - m) / s and ours D = df/dx at constant m and s, over T steps:
    df/dx = D - mean(D) - z mean(D z), plus (1 + z (f - m_i) / s_i) / T on the own series.
    """
    past = random_past(1)
    ours = zero_shot(base_folder, node_scale=0.0).jacobian(past)[0]  # (target, step, source)
    package = torch.autograd.functional.jacobian(
        lambda x: package_forecast(package_model, x), past
    )[0, :, 0]
    mean, sd = past[0].mean(0), past[0].std(0, correction=0)
    z = (past[0] - mean) / sd
    expected = ours - ours.mean(1, keepdim=True) - z * (ours * z).mean(1, keepdim=True)
    forecast = (package_forecast(package_model, past)[0] - mean) / sd
    own = torch.arange(VARIABLES)
    expected[own, :, own] += ((1 + z * forecast) / STEPS).T
    torch.testing.assert_close(package, expected, atol=1e-5, rtol=1e-4)
    # Left in, they make slopes on the own series sum to 1 and on another to 0, whatever it does.
    torch.testing.assert_close(package.sum(1), torch.eye(VARIABLES), atol=1e-5, rtol=0)
    assert (ours.sum(1) - torch.eye(VARIABLES)).abs().min() > 1e-3


def test_forbidden_inputs_do_not_reach_their_target(base_folder):
    forecaster, past = zero_shot(base_folder), random_past()
    allowed = torch.ones(VARIABLES, STEPS, VARIABLES, dtype=torch.bool)
    allowed[1, :, 2] = False
    forecaster.constrain(allowed)
    slopes = forecaster.jacobian(past)
    assert (slopes[:, 1, :, 2] == 0).all()
    assert (slopes[allowed.expand_as(slopes)] != 0).all()


def test_the_domain_matters_once_it_is_learned(base_folder):
    forecaster = zero_shot(base_folder, domains=2)
    past, domain = random_past(1).expand(2, -1, -1), torch.tensor([0, 1])
    first, second = forecaster(past, domain=domain)
    torch.testing.assert_close(first, second)
    forecaster.domain.data[1] += torch.linspace(-1, 1, forecaster.node.numel()).view_as(
        forecaster.node
    )
    changed = forecaster(past, domain=domain)
    torch.testing.assert_close(changed[0], first)
    assert (changed[1] - second).abs().min() > 1e-3
    assert forecaster.jacobian(past, domain=domain).shape == (2, VARIABLES, STEPS, VARIABLES)


def two_variables(rows: int = 1500) -> Windows:
    """a remembers itself a little and drives b after 3 steps; nothing else crosses."""
    x = np.random.default_rng(0).normal(size=(rows, 2))
    for t in range(3, rows):
        x[t, 0] += 0.3 * x[t - 1, 0]
        x[t, 1] = x[t - 3, 0] + 0.5 * x[t, 1]
    return Windows.of(Panel.from_arrays([x], ["a", "b"]), STEPS)


@pytest.fixture(scope="module")
def fine_tuned(base_folder) -> tuple[ChronosModel, Windows]:
    training = TrainingSettings(
        learning_rate=1e-2, batch_size=32, max_steps=200, warmup_steps=10, look_every=50
    )
    windows = two_variables()
    early, late = windows.split(0.2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        settings = Chronos(weights=str(base_folder), training=training)
        forecaster = ChronosModel(windows.shape, settings)
    forecaster.fit(FitData(early, late))
    return forecaster, late


def test_fine_tuning_finds_the_one_cross_edge(fine_tuned):
    forecaster, late = fine_tuned
    found = relevance(Network(forecaster), late.at(np.arange(200)))["relevance"]
    cross = {
        (source, target, lag): float(found.sel(source=source, target=target, lag=lag))
        for source, target in [("a", "b"), ("b", "a")]
        for lag in range(1, STEPS + 1)
    }
    assert max(cross, key=cross.__getitem__) == ("a", "b", 3)
    assert float(squared_errors(Network(forecaster), late).mean(0)[1]) < 0.7  # 1 is the variance


def test_fine_tuning_leaves_the_base_alone(fine_tuned, base_folder):
    forecaster, _ = fine_tuned
    untouched = zero_shot(base_folder)
    assert int(checksum(forecaster.base)) == int(untouched.base_checksum)
    moved = {
        name for name, gain in forecaster.norms.items() if not gain.equal(untouched.norms[name])
    }
    assert moved == set(untouched.norms)
    assert len(moved) == 2 * 3 + 1  # three in a layer, one at the end


def test_discovery_with_it_comes_back_from_disk(base_folder, tmp_path):
    import forecause as fc

    panel = two_variables(300).panel
    found = fc.discover(
        panel,
        STEPS,
        preset="quick",
        select=fc.TopK(3, overall=True),
        config=fc.Config(forecaster="chronos", weights=str(base_folder)),
    )
    assert found.relevance.attrs["samples"] == 100
    back = fc.load(found.save(tmp_path / "run"))
    assert back.graph == found.graph
    assert back.forecast(2).equals(found.forecast(2))
    with pytest.raises(InputError, match="needs weights"):
        fc.discover(panel, STEPS, forecaster="chronos")
    with pytest.raises(InputError, match="no other forecaster takes them"):
        fc.discover(panel, STEPS, config=fc.Config(forecaster="linear", weights=str(base_folder)))


def test_fine_tuned_it_finds_the_edges_by_its_own_tests(base_folder, monkeypatch):
    """So few steps teach it little: it beats the mean of no target, and alone would draw nothing.
    Its tests find the edges all the same."""
    import forecause as fc

    training = TrainingSettings(
        learning_rate=1e-2, batch_size=32, max_steps=40, warmup_steps=10, look_every=20
    )
    settings = Chronos(weights=str(base_folder), training=training)
    panel = two_variables(500).panel
    monkeypatch.setattr(Refits, "_has_learned", lambda *_: True)
    config = fc.Config(trend="none")
    run = fc.discover(panel, 3, forecaster=settings, select="fdr", fdr=0.01, config=config)
    assert edge_set(run.graph) == {("a", "a", 1), ("a", "b", 3)}


def test_zero_shot_its_own_tests_find_no_links_where_there_are_none(base_folder):
    """Forecasts by random weights are of no use, which must not make edges."""
    import forecause as fc

    rows = np.random.default_rng(1).normal(size=(250, VARIABLES))
    for t in range(1, len(rows)):
        rows[t] += 0.6 * rows[t - 1]
    run = fc.discover(
        Panel.from_arrays([rows], ["a", "b", "c"]),
        2,
        preset="quick",
        select="fdr",
        fdr=0.1,
        config=fc.Config(forecaster="chronos", weights=str(base_folder), trend="none"),
    )
    edges = edge_set(run.graph)
    assert all(source == target for source, target, _ in edges)
    p_values = run.relevance["p_value"].values
    cross = ~np.eye(VARIABLES, dtype=bool)
    assert (p_values[cross] < 0.05).mean() < 0.07


def test_its_own_tests_need_more_windows_than_a_long_context_leaves(base_folder):
    import forecause as fc

    panel = Panel.from_arrays([np.random.default_rng(0).normal(size=(300, 2))], ["a", "b"])
    with pytest.raises(InputError, match=r"There are 268 windows for 64 inputs.*smaller lag"):
        fc.discover(
            panel,
            32,
            preset="quick",
            select="fdr",
            config=fc.Config(forecaster="chronos", weights=str(base_folder)),
        )


def test_the_adapter_round_trips_and_holds_nothing_else(fine_tuned, base_folder, tmp_path):
    forecaster, late = fine_tuned
    save_file(forecaster.state_dict(), tmp_path / "adapter.safetensors")
    settings = Chronos(**json.loads(forecaster.settings.model_dump_json()))
    again = ChronosModel(late.shape, settings)
    again.load_state_dict(load_file(tmp_path / "adapter.safetensors"))
    window = drawn(late, 10)
    assert torch.equal(again.forecast(window), forecaster.forecast(window))
    assert torch.equal(again.log_likelihood(window), forecaster.log_likelihood(window))
    size = (tmp_path / "adapter.safetensors").stat().st_size
    assert size < (base_folder / "model.safetensors").stat().st_size / 20


def test_an_adapter_of_other_weights_is_refused(base_folder, tmp_path):
    other = zero_shot(make_base(tmp_path / "other", seed=1))
    with pytest.raises(InputError, match=r"made for other weights than those in .*/base' now"):
        zero_shot(base_folder).load_state_dict(other.state_dict())


def test_zero_shot_trains_nothing_but_learns_its_noise(base_folder):
    rows = np.random.default_rng(0).normal(size=(80, VARIABLES))
    early, late = Windows.of(Panel.from_arrays([rows], ["a", "b", "c"]), STEPS).split(0.3)
    forecaster = zero_shot(base_folder)
    before = {name: value.clone() for name, value in forecaster.state_dict().items()}
    forecaster.fit(FitData(early, late))
    after = forecaster.state_dict()
    assert [name for name in after if not after[name].equal(before[name])] == ["noise_variance"]


def test_the_base_moves_with_the_forecaster_and_stays_without_dropout(base_folder):
    forecaster = zero_shot(base_folder).train()
    past = random_past()
    assert torch.equal(forecaster(past), forecaster(past))
    forecaster.to("meta")
    assert all(weight.is_meta for weight in forecaster.base.parameters())


def test_a_longer_lag_than_the_context_is_refused(base_folder):
    message = "at most 8 steps, found a largest lag of 9; use a smaller lag or more patches"
    with pytest.raises(InputError, match=message):
        zero_shot(base_folder, steps=9, patches=2)
    with pytest.raises(InputError, match="at most 64 steps"):  # what the model itself can take
        zero_shot(base_folder, steps=65)


def test_relevance_propagation_is_refused(base_folder):
    with pytest.raises(InputError, match="cannot be read from the forecaster 'chronos'"):
        zero_shot(base_folder).jacobian(random_past(), ATTN_LRP)


def test_a_folder_is_kept_as_a_full_path(base_folder, monkeypatch):
    monkeypatch.chdir(base_folder.parent)
    assert Chronos(weights="base").weights == str(base_folder.resolve())
    assert Chronos().weights == "amazon/chronos-2"


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "chronos.chronos2", None)
    with pytest.raises(
        MissingExtra, match=r"pip install chronos-forecasting \(or .*'\.\[chronos\]"
    ):
        ChronosModel((STEPS, VARIABLES), Chronos())


def test_weights_that_are_nowhere_are_an_input_error(base_folder, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"no Chronos-2 weights at 'nobody/nothing'.*the hub"):
        zero_shot("nobody/nothing")
    with pytest.raises(InputError, match=r"There is no folder '\./nowhere'; give a folder"):
        zero_shot("./nowhere")


def copy_of(base_folder: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_bytes((base_folder / name).read_bytes())
    return folder


def test_damaged_weights_are_an_input_error(base_folder, tmp_path):
    folder = copy_of(base_folder, tmp_path / "damaged")
    (folder / "model.safetensors").write_bytes(b"not a tensor")
    with pytest.raises(InputError, match="Expected a Chronos-2 model"):
        zero_shot(folder)


def test_weights_with_a_missing_part_are_refused(base_folder, tmp_path):
    folder = copy_of(base_folder, tmp_path / "partial")
    weights = load_file(folder / "model.safetensors")
    del weights["shared.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"not whole: shared\.weight is missing"):
        zero_shot(folder)


def test_pickled_weights_are_never_read(base_folder, tmp_path):
    folder = copy_of(base_folder, tmp_path / "pickled")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="Expected a Chronos-2 model"):
        zero_shot(folder)


def test_another_architecture_is_refused(base_folder, tmp_path):
    folder = copy_of(base_folder, tmp_path / "bolt")
    about = json.loads((folder / "config.json").read_text())
    about["architectures"] = ["ChronosBoltModelForForecasting"]
    (folder / "config.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match="found ChronosBoltModelForForecasting"):
        zero_shot(folder)


@pytest.fixture
def asked_hosts(monkeypatch):
    """The hosts that anything looked for; none is reached."""
    found = []

    def refuse(host, *_, **__):
        found.append(host)
        raise OSError("no network here")

    monkeypatch.setattr("socket.getaddrinfo", refuse)
    monkeypatch.setattr("socket.socket.connect", lambda _, address: refuse(address))
    return found


def test_loading_a_run_never_asks_the_hub_unless_told_to(
    tmp_path, base_folder, asked_hosts, monkeypatch
):
    spec = Chronos.zero_shot(str(base_folder))
    table = np.random.default_rng(0).normal(size=(120, 2))
    folder = fc.discover(table, max_lag=4, forecaster=spec).save(tmp_path / "run")
    assert fc.load(folder).forecaster.kind == "chronos"
    about = json.loads((folder / "run.json").read_text())
    about["forecaster"]["settings"]["weights"] = "nobody/nothing-of-this-name"
    (folder / "run.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match=r"not on this machine.*fetch=True"):
        fc.load(folder)
    assert asked_hosts == []
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: str(base_folder / "x"))
    assert fc.load(folder).forecaster.kind == "chronos"  # fetched before
    assert asked_hosts == []

    def ask(weights):  # the library itself tries for half a minute
        raise OSError(f"no {weights} at the hub")

    monkeypatch.setattr("chronos.chronos2.config.Chronos2CoreConfig.from_pretrained", ask)
    with pytest.raises(InputError, match="as a hub id it was not found"):
        fc.load(folder, fetch=True)
