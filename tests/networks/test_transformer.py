"""The one-layer transformer against the one that writes out every token."""

import numpy as np
import pytest
import torch

from forecause.forecast.attribution.readouts import ATTN_LRP, CP_LRP
from forecause.forecast.forecaster import PLAIN, FitData
from forecause.networks.paper_transformers import DeepTransformerModel
from forecause.networks.settings import DeepTransformer, Transformer
from forecause.networks.transformer import TransformerModel
from tensors import drawn

SHARED = ("norm_attention", "norm_network", "query", "value", "mix", "expand", "shrink")


def same_weights(domains=0):
    """The same weights in both forms."""
    torch.manual_seed(0)
    settings = DeepTransformer(
        width=8, heads=2, layers=1, static_bias=True, teacher_forcing=False, domains=domains
    )
    deep = DeepTransformerModel((4, 3), settings).double().requires_grad_(False)
    one = TransformerModel((4, 3), Transformer(width=8, heads=2, domains=domains))
    one = one.double().requires_grad_(False)
    for parameter in deep.parameters():
        parameter.normal_()
    (block,) = deep.blocks
    for name in SHARED:
        getattr(one, name).load_state_dict(getattr(block, name).state_dict())
    one.key.weight.copy_(block.key.weight)  # its bias is the same for all tokens
    one.embed.load_state_dict(deep.value.state_dict())
    one.norm.load_state_dict(deep.norm.state_dict())
    one.head.load_state_dict(deep.head.state_dict())
    for name in ("node", "time", "domain"):
        getattr(one, name).copy_(getattr(deep, name))
    one.bias.copy_(block.bias[:, :, -3:])
    return one, deep


def some_past():
    return torch.randn(5, 4, 3, dtype=torch.float64)


def some_domains(domains):
    return torch.randint(0, domains, (5,)) if domains else None


@pytest.mark.parametrize("domains", [0, 3])
def test_it_forecasts_what_tokens_written_out_do(domains):
    one, deep = same_weights(domains)
    past, domain = some_past(), some_domains(domains)
    torch.testing.assert_close(one(past, domain=domain), deep(past, domain=domain))
    weights, every = (model.attentions(past, domain)[0] for model in (one, deep))
    torch.testing.assert_close(weights, every[:, :, -3:])


@pytest.mark.parametrize("domains", [0, 3])
@pytest.mark.parametrize("rules", [PLAIN, ATTN_LRP, CP_LRP])
def test_its_slopes_are_those_of_tokens_written_out(rules, domains):
    one, deep = same_weights(domains)
    past, domain = some_past(), some_domains(domains)
    slopes, every = (model.jacobian(past, rules, domain) for model in (one, deep))
    torch.testing.assert_close(slopes, every)


def test_a_forbidden_input_is_held_at_its_mean():
    one, deep = same_weights()
    allowed = torch.rand(3, 4, 3) < 0.6
    one.constrain(allowed)
    deep.constrain(allowed)
    past = some_past()
    torch.testing.assert_close(one(past), deep(past))
    assert (one.jacobian(past)[:, ~allowed] == 0).all()


def few_inputs():
    """A model whose targets read 5 of 12 inputs, and which these are."""
    torch.manual_seed(0)
    model = TransformerModel((4, 3), Transformer(width=8, heads=2, inputs=5)).double()
    reads = torch.stack([torch.randperm(9)[:5] for _ in range(3)])
    reads[:, 0] = torch.tensor([9, 10, 11])
    model.read_only(reads)
    return model.requires_grad_(False), reads


def test_a_target_reads_its_own_inputs_alone():
    model, reads = few_inputs()
    slopes = model.jacobian(some_past()).flatten(2)
    read = torch.zeros(3, 12, dtype=torch.bool).scatter_(1, reads, True)
    assert (slopes[:, read] != 0).all()
    assert (slopes[:, ~read] == 0).all()


def test_attention_to_few_inputs_sums_to_one_over_all():
    model, reads = few_inputs()
    (weights,) = model.attentions(some_past())
    torch.testing.assert_close(weights.sum(-1), torch.ones(5, 2, 3, dtype=torch.float64))
    assert (weights.gather(3, reads.expand(5, 2, 3, 5)) > 0).all()


def test_the_query_must_be_among_the_inputs():
    model = TransformerModel((4, 3), Transformer(width=8, heads=2, inputs=2))
    with pytest.raises(ValueError, match="latest value"):
        model.read_only(torch.zeros(3, 2, dtype=torch.long))


def test_it_learns_a_chain(chain_windows):
    torch.manual_seed(0)
    training = Transformer().training.model_copy(update={"max_steps": 600})
    model = TransformerModel((2, 3), Transformer(width=16, training=training))
    early, late = chain_windows.split(0.2)
    model.fit(FitData(early, late))
    mse = model.errors(drawn(late)).mean(0).detach().numpy()
    # the share of each variable's variance that is noise: 1, 1 / 1.64, about 1 / 2.1
    assert mse[1] == pytest.approx(1 / 1.64, abs=0.06)
    assert mse[2] < 0.56
    assert np.isfinite(mse).all()
