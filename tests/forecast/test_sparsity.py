import numpy as np
import pytest
import torch
from torch import nn

import forecause as fc
from forecause.data import Panel, Windows
from forecause.forecast.base import Forecaster, Lesson, squared_errors
from forecause.forecast.mlp import MLP, MLPSettings
from forecause.forecast.registry import FORECASTERS, NEURAL, preset_settings
from forecause.forecast.rules import PLAIN
from forecause.forecast.sparsity import BLOCKS, FEW, TRIED, Penalty, best_weight
from forecause.forecast.training import TrainingSettings
from forecause.forecast.vector_transformer import VectorTransformer, VectorTransformerSettings

BRIEF = TrainingSettings(
    learning_rate=1e-2, max_steps=140, warmup_steps=20, look_every=20, patience=4, rate_drops=0
)


class Map(Forecaster):
    """Outputs are a linear map of the past, whose Jacobian is its weight."""

    kind = "map"

    def __init__(self, outputs=1):
        super().__init__((2, 3), VectorTransformerSettings())
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(3, outputs, 2, 3))

    def outputs(self, past, rules=PLAIN):
        return torch.einsum("bsv,tosv->bto", past, self.weight)

    def forward(self, past, rules=PLAIN):
        return self.outputs(past)[..., 0]

    def fit(self, lesson):
        raise NotImplementedError


def norms_of(model, batch, seed=0):
    past = torch.randn(batch, model.max_lag, model.n_variables).requires_grad_()
    return Penalty(1.0, seed).norms(model, past, model.outputs(past)).detach()


@pytest.mark.parametrize("outputs", [1, 2])
def test_projections_of_a_linear_map_have_the_l1_norm_of_its_weight(outputs):
    model = Map(outputs)
    expected = model.weight.abs().sum((1, 2, 3)).detach()
    torch.testing.assert_close(norms_of(model, 30 * outputs), expected)  # every output 10 times


def test_with_fewer_windows_than_outputs_the_estimate_has_no_bias():
    model = Map(outputs=2)
    draws = torch.stack([norms_of(model, 4, seed) for seed in range(1000)])
    expected = model.weight.abs().sum((1, 2, 3)).detach()
    torch.testing.assert_close(draws.mean(0), expected, rtol=0.06, atol=0)


def test_of_a_network_they_are_the_l1_norm_of_its_jacobian():
    torch.manual_seed(0)
    model = VectorTransformer((2, 3), VectorTransformerSettings(width=16))
    past = torch.randn(20, 2, 3)
    exact = model.jacobian(past).abs().sum((2, 3)).mean(0)
    draws = []
    for seed in range(200):
        free = past.clone().requires_grad_()
        draws.append(Penalty(1.0, seed).norms(model, free, model.outputs(free)).detach())
    torch.testing.assert_close(torch.stack(draws).mean(0), exact, rtol=0.03, atol=0)


def test_the_loss_is_the_error_plus_the_weighted_penalty():
    model, window = Map(), torch.randn(30, 3, 3)
    expected = model.loss(window) + 0.3 * model.weight.abs().sum((1, 2, 3))
    torch.testing.assert_close(Penalty(0.3).loss(model, window), expected)


def test_the_penalty_teaches_the_weights():
    model = Map()
    past = torch.randn(30, 2, 3).requires_grad_()
    Penalty(1.0).norms(model, past, model.outputs(past)).sum().backward()
    torch.testing.assert_close(model.weight.grad, model.weight.sign())


def noisy(rows=100, seed=400):
    """Four variables in pairs, one driving the other after a step."""
    x = np.random.default_rng(seed).normal(size=(rows, 4))
    x[1:, 2:] += 0.8 * x[:-1, :2]
    return x


def windows_of(values, max_lag=2):
    names = [f"v{i}" for i in range(values.shape[1])]
    return Windows.of(Panel.from_arrays([values], names), max_lag)


def fitted(kind, sizes, windows, weights):
    torch.manual_seed(0)
    settings = {MLP: MLPSettings, VectorTransformer: VectorTransformerSettings}[kind]
    model = kind(windows.shape, settings(training=BRIEF, sparsity=weights, **sizes))
    model.fit(Lesson(*windows.split(0.2)))
    return model.requires_grad_(False)


NETWORKS = [(MLP, {"hidden": 8}), (VectorTransformer, {"width": 16})]


@pytest.mark.parametrize(("kind", "sizes"), NETWORKS, ids=["mlp", "vector"])
def test_a_penalty_takes_energy_from_irrelevant_inputs_first(kind, sizes):
    windows = windows_of(noisy())
    true = torch.zeros(4, 2, 4, dtype=torch.bool)
    true[[2, 3], 1, [0, 1]] = True
    shares = []
    for weight in (0.0, 0.2):
        model = fitted(kind, sizes, windows, (weight,))
        energy = model.jacobian(windows.draw(np.arange(90))[:, :-1]).square().mean(0)
        shares.append(float(energy[~true].sum() / energy[true].sum()))
    assert shares[1] < 0.7 * shares[0]


def test_the_weight_chosen_is_one_of_those_tried_and_beats_none():
    values = noisy(2100)
    windows = windows_of(values[:100])
    chosen = fitted(*NETWORKS[1], windows, (0.0, 0.1, 3.0))
    assert chosen.settings.sparsity == (0.1,)
    none = fitted(*NETWORKS[1], windows, (0.0,))
    fresh = windows_of(values[100:])
    losses = [float(squared_errors(model, fresh).mean()) for model in (chosen, none)]
    assert losses[0] < losses[1]


def test_the_mlp_chooses_too_and_is_judged_from_a_start_that_never_saw_the_block():
    windows = windows_of(noisy())
    assert fitted(*NETWORKS[0], windows, (0.1, 3.0)).settings.sparsity == (0.1,)
    starts = []

    class Watched(MLP):
        def fit(self, lesson):
            starts.append(len(lesson.windows))
            super().fit(lesson)

    model = Watched(windows.shape, MLPSettings(hidden=2, training=BRIEF, sparsity=(0.1, 0.2)))
    early, late = windows.split(0.2)
    model.fit(Lesson(early, late))
    assert starts[0] == len(early)
    assert all(len(early) * 0.6 < count < len(early) * 0.7 for count in starts[1:])


def trials(windows, weights):
    """What `best_weight` asks for: (weight, windows taught, windows judged)."""
    asked = []

    class Trial(Map):
        def __init__(self, weight):
            super().__init__()
            self.amount = weight

        def fit(self, lesson):
            asked.append((self.amount, lesson.windows.rows, lesson.held_out.rows))
            with torch.no_grad():
                self.weight *= self.amount  # the less, the better a forecast of noise

    lesson = Lesson(*windows.split(0.2))
    return best_weight(weights, lesson, Trial), asked, lesson


def test_few_windows_are_judged_in_blocks_of_time_that_were_not_taught():
    windows = windows_of(np.random.default_rng(0).normal(size=(100, 3)))
    best, asked, lesson = trials(windows, (1.0, 0.1, 0.5))
    assert best == 0.1
    assert len(asked) == 3 * BLOCKS
    for weight in (1.0, 0.1, 0.5):
        judged = [rows for amount, _, rows in asked if amount == weight]
        np.testing.assert_array_equal(np.concatenate(judged), lesson.windows.rows)
    for _, taught, judged in asked:
        assert not set(taught) & set(judged)
        assert set(taught) | set(judged) == set(lesson.windows.rows)


def test_many_windows_are_judged_by_the_held_out_tail_alone():
    windows = windows_of(np.random.default_rng(0).normal(size=(FEW * 5 // 4 + 10, 3)))
    best, asked, lesson = trials(windows, (1.0, 0.1))
    assert best == 0.1
    assert len(asked) == 2
    np.testing.assert_array_equal(asked[0][2], lesson.held_out.rows)


def test_targets_stop_together_so_that_their_slopes_can_be_compared():
    windows = windows_of(noisy(50))
    assert not fitted(MLP, {}, windows, (0.1,)).separate_targets
    assert fitted(MLP, {}, windows, ()).separate_targets


def test_the_preset_is_for_networks_and_default_ones_stay_as_they_are():
    for kind in FORECASTERS:
        default, sparse = (preset_settings(kind, preset) for preset in ("default", "sparse"))
        assert getattr(default, "sparsity", ()) == ()
        if kind in NEURAL:
            assert sparse.sparsity == TRIED
        else:
            assert sparse == default


def test_the_same_seed_gives_the_same_weights():
    windows = windows_of(noisy(60))
    one, two = (fitted(*NETWORKS[1], windows, (0.1,)).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_run_with_the_preset_comes_back_from_disk_with_its_weight(tmp_path, monkeypatch):
    monkeypatch.setattr("forecause.forecast.TRIED", (0.1,))
    found = fc.discover(noisy(60), 1, forecaster="mlp", preset="sparse")
    found.save(tmp_path / "run")
    again = fc.load(tmp_path / "run")
    assert again.forecaster.settings.sparsity == (0.1,)
    assert again.forecaster.settings == found.forecaster.settings
    past = torch.randn(5, 1, 4)
    torch.testing.assert_close(again.forecaster(past), found.forecaster(past))


def test_with_another_head_the_variance_is_sparse_too():
    windows = windows_of(noisy(), 1)
    slopes = []
    for weight in (0.0, 0.3):
        model = fitted(VectorTransformer, {"width": 16, "head": "gaussian"}, windows, (weight,))
        past = windows.draw(np.arange(90))[:, :-1].requires_grad_()
        (found,) = torch.autograd.grad(model.distribution(past)[..., 1].sum(), past)
        slopes.append(float(found.abs().mean()))
    assert slopes[1] < slopes[0] / 2
