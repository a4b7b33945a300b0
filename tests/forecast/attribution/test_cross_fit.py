import numpy as np
import pytest
import torch

from fitted import fit_forecaster
from forecause.data import Panel, Windows
from forecause.errors import InputError
from forecause.forecast.attribution import cross_fitted, relevance
from forecause.networks.mlp_and_cnn import MLPModel
from forecause.networks.network import Network
from forecause.networks.settings import MLP


def random_mlp(seed):
    torch.manual_seed(seed)
    model = MLPModel((2, 3), MLP(hidden=8)).requires_grad_(False)
    model.last.normal_()
    return Network(model)


def test_it_is_the_mean_product_over_pairs_of_models(chain_windows):
    models = [random_mlp(seed) for seed in range(3)]
    windows = chain_windows.at(np.arange(600))
    found = cross_fitted(models, windows)
    g = [m.jacobian(windows.draw(np.arange(600)).past).astype(float) for m in models]
    expected = np.stack([g[0] * g[1], g[0] * g[2], g[1] * g[2]]).mean((0, 1))
    expected = expected[:, ::-1].swapaxes(1, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)


def test_parts_are_disjoint_blocks_that_cover_everything(chain_windows):
    parts = chain_windows.interleaved(2, blocks=10)
    rows = np.concatenate([part.rows for part in parts])
    assert sorted(rows) == sorted(chain_windows.rows)
    jumps = np.diff(parts[0].rows) > 1
    assert jumps.sum() == 4  # five stretches


def test_noise_has_a_floor_in_the_energy_of_one_model_and_none_across_models():
    rng = np.random.default_rng(0)
    windows = Windows.of(Panel.from_arrays([rng.normal(size=(1500, 4))], list("abcd")), 2)
    whole = fit_forecaster("linear", windows).forecaster
    parts = [fit_forecaster("linear", part).forecaster for part in windows.interleaved(2)]
    energy = relevance(whole, windows)["relevance"].values
    crossed = cross_fitted(parts, windows).values
    assert energy.min() > 0
    assert 0.25 < (crossed < 0).mean() < 0.75
    assert abs(crossed.mean()) < 0.3 * energy.mean()


def test_one_part_is_refused(chain_windows):
    with pytest.raises(InputError, match="at least 2 parts, found 1"):
        cross_fitted([random_mlp(0)], chain_windows)
