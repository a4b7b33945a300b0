import numpy as np
import pytest
import torch

from forecause.errors import InputError
from forecause.forecast.attribution import READOUTS
from forecause.forecast.linear import Linear, LinearModel
from forecause.networks.paper_transformers import DeepTransformerModel
from forecause.networks.settings import DeepTransformer, Transformer
from forecause.networks.transformer import TransformerModel
from systems import with_next
from tensors import read


@pytest.fixture
def model():
    torch.manual_seed(0)
    settings = DeepTransformer(width=8, heads=2, layers=2, static_bias=True)
    made = DeepTransformerModel((3, 2), settings)
    with torch.no_grad():
        for block in made.blocks:
            block.bias.normal_()
    return made


def test_a_target_attends_one_in_all(model):
    past = torch.randn(4, 3, 2)
    for name in ("attention", "rollout"):
        found = read(name, model, past)
        assert found.shape == (4, 2, 3, 2)
        torch.testing.assert_close(found.sum((2, 3)), torch.ones(4, 2))


def test_rollout_multiplies_the_layers(model):
    past = torch.randn(1, 3, 2)
    first, second = (a.mean(1)[0] for a in model.attentions(past))
    eye = torch.eye(6)
    expected = (0.5 * second + 0.5 * eye) @ (0.5 * first + 0.5 * eye)
    found = read("rollout", model, past)[0]
    torch.testing.assert_close(found, expected[-2:].view(2, 3, 2))


def test_attention_follows_the_static_bias(model):
    with torch.no_grad():
        for block in model.blocks:
            block.bias.zero_()
            block.bias[:, :, -1, 2] = 50.0  # last target, token of step 1, variable 0
    found = read("attention", model, torch.randn(4, 3, 2))
    torch.testing.assert_close(found[:, 1, 1, 0], torch.ones(4))


def test_one_layer_rolls_out_to_half_its_attention():
    torch.manual_seed(0)
    one = TransformerModel((3, 2), Transformer(width=8, heads=2))
    past = torch.randn(4, 3, 2)
    attention = read("attention", one, past)
    identity = torch.eye(6)[-2:].view(2, 3, 2)
    rolled = read("rollout", one, past)
    torch.testing.assert_close(rolled, (attention + identity) / 2)


def test_other_forecasters_are_refused():
    with pytest.raises(InputError, match="found the forecaster 'linear'; use forecaster=\"trans"):
        READOUTS["attention"].per_sample(
            LinearModel((2, 2), Linear()), with_next(np.zeros((1, 2, 2)))
        )
