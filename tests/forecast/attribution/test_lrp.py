"""LRP as a modified gradient against relevance propagated explicitly, operation by operation."""

import math

import captum.attr
import pytest
import torch
from torch import nn

from forecause.forecast.attribution.readouts import ATTN_LRP, BALANCED_LRP, CP_LRP
from forecause.networks.backward import layer_norm
from forecause.networks.mlp_and_cnn import MLPModel
from forecause.networks.paper_transformers import DeepTransformerModel, Prior
from forecause.networks.settings import MLP, DeepTransformer
from tensors import read

RULES = {"lrp": ATTN_LRP, "balanced-lrp": BALANCED_LRP, "cp-lrp": CP_LRP}


def through_linear(x, weight, out, relevance):
    """Epsilon-LRP of out = x @ weight.T (+ bias): x_j gets its share of every output it feeds."""
    shares = x[..., None, :] * weight / out[..., :, None]  # (..., out, in)
    return (shares * relevance[..., :, None]).sum(-2)


def through_norm(x, norm, out, relevance):
    """LayerNorm is linear once its standard deviation is a constant."""
    d = x.shape[-1]
    sd = (x.var(-1, unbiased=False) + norm.eps).sqrt()
    centring = torch.eye(d, dtype=x.dtype) - 1 / d
    weight = norm.weight[:, None] * centring / sd[..., None, None]
    return through_linear(x, weight, out, relevance)


def explain_block(block, x, mask, relevance_out, rule):
    """Relevance of the tokens x (token, width) given that of the block's output."""
    heads, d = block.heads, x.shape[1] // block.heads
    n1 = block.norm_attention(x)
    q, k, v = (
        f(n1).view(-1, heads, d).transpose(0, 1) for f in (block.query, block.key, block.value)
    )
    logits = q @ k.transpose(1, 2) / math.sqrt(d) + mask
    logits = logits + block.bias[0] if block.bias is not None else logits
    weights = logits.softmax(-1)
    heard = weights @ v  # (head, token, d)
    joined = heard.transpose(0, 1).reshape(len(x), -1)
    mixed = block.mix(joined)
    middle = x + mixed
    n2 = block.norm_network(middle)
    expanded = block.expand(n2)
    hidden = expanded.relu()
    network = block.shrink(hidden)
    out = middle + network

    r_network, r_middle = relevance_out * network / out, relevance_out * middle / out
    r_hidden = through_linear(hidden, block.shrink.weight, network, r_network)
    r_n2 = through_linear(n2, block.expand.weight, expanded, r_hidden)  # ReLU passes it on
    r_middle = r_middle + through_norm(middle, block.norm_network, n2, r_n2)
    r_x, r_mixed = r_middle * x / middle, r_middle * mixed / middle
    if rule == "balanced-lrp":
        r_x = r_x / 2
    r_joined = through_linear(joined, block.mix.weight, mixed, r_mixed)
    r_heard = r_joined.view(-1, heads, d).transpose(0, 1)

    products = weights[..., None] * v[:, None]  # (head, query, key, d)
    r_products = products / heard[:, :, None] * r_heard[:, :, None]
    share = 1.0 if rule == "cp-lrp" else 0.5
    r_v = share * r_products.sum(1)
    r_q, r_k = torch.zeros_like(q), torch.zeros_like(k)
    if rule != "cp-lrp":
        r_weights = 0.5 * r_products.sum(-1)
        seen = weights > 0
        finite = torch.where(seen, logits, torch.ones_like(logits))
        r_logits = finite * (r_weights - weights * r_weights.sum(-1, keepdim=True))
        pairs = q[:, :, None] * k[:, None] / math.sqrt(d) / finite[..., None] * seen[..., None]
        r_pairs = 0.5 * pairs * r_logits[..., None]
        r_q, r_k = r_pairs.sum(2), r_pairs.sum(1)
    r_n1 = torch.zeros_like(n1)
    for layer, value, r in ((block.query, q, r_q), (block.key, k, r_k), (block.value, v, r_v)):
        flat = value.transpose(0, 1).reshape(len(x), -1)
        r_n1 = r_n1 + through_linear(n1, layer.weight, flat, r.transpose(0, 1).reshape(len(x), -1))
    return r_x + through_norm(x, block.norm_attention, n1, r_n1)


def explain(model, past, target, rule):
    """Relevance of every input of one window for the forecast of `target`."""
    states = [model._tokens(past[None], None)[0]]
    prior = Prior.of(model, None)
    for block in model.blocks:
        states.append(block(states[-1][None], prior, len(states[-1]), RULES[rule])[0])
    last = model.norm(states[-1])
    token = len(last) - model.n_variables + target
    relevance = torch.zeros_like(last)
    relevance[token] = last[token] * model.head.weight[0]
    relevance = through_norm(states[-1], model.norm, last, relevance)
    for block, state in zip(reversed(model.blocks), reversed(states[:-1]), strict=True):
        relevance = explain_block(block, state, model.mask, relevance, rule)
    contribution = past.reshape(-1, 1) * model.value.weight[:, 0]
    return (relevance * contribution / states[0]).sum(1).view_as(past)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("layers", [1, 2, 3, 4])
@pytest.mark.parametrize("static_bias", [False, True])
def test_it_equals_epsilon_lrp_written_out(rule, layers, static_bias):
    torch.manual_seed(0)
    settings = DeepTransformer(width=8, heads=2, layers=layers, static_bias=static_bias)
    model = DeepTransformerModel((3, 2), settings).double().requires_grad_(False)
    for name, parameter in model.named_parameters():
        if "bias" in name or "norm" in name:
            parameter += 0.2 * torch.randn_like(parameter)
    past = torch.randn(3, 3, 2, dtype=torch.float64)
    found = read(rule, model, past)
    for sample in range(3):
        for target in range(2):
            expected = explain(model, past[sample], target, rule)
            torch.testing.assert_close(found[sample, target], expected, atol=1e-9, rtol=1e-9)


def test_the_rules_leave_the_forecast_as_it_is():
    torch.manual_seed(0)
    model = DeepTransformerModel((3, 2), DeepTransformer(width=8, layers=2)).double()
    past = torch.randn(4, 3, 2, dtype=torch.float64)
    for rules in RULES.values():
        torch.testing.assert_close(model(past, rules), model(past), atol=1e-12, rtol=1e-12)


def test_cp_lrp_conserves_relevance_where_nothing_has_a_bias():
    torch.manual_seed(0)
    settings = DeepTransformer(width=8, layers=1)
    model = DeepTransformerModel((3, 2), settings).double().requires_grad_(False)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()
    past = torch.randn(4, 3, 2, dtype=torch.float64)
    forecast = model(past, CP_LRP)
    # relevance of the values and of the identities (node and time) adds up to the forecast
    tokens = model._tokens(past, None).requires_grad_()
    out = model.blocks[0](tokens, Prior.of(model, None), 2, CP_LRP)
    value = model.head(layer_norm(model.norm, out, CP_LRP)).squeeze(-1)
    for target in range(2):
        (slopes,) = torch.autograd.grad(value[:, target].sum(), tokens, retain_graph=True)
        torch.testing.assert_close((slopes * tokens).sum((1, 2)), forecast[:, target])


def test_in_a_relu_network_lrp_is_input_times_gradient():
    torch.manual_seed(0)
    model = MLPModel((2, 3), MLP(hidden=8)).double()
    with torch.no_grad():
        model.last.normal_()
    past = torch.randn(5, 2, 3, dtype=torch.float64)
    lrp = read("lrp", model, past)
    torch.testing.assert_close(lrp, read("input-gradient", model, past))


def test_in_a_relu_network_lrp_is_what_captum_propagates():
    torch.manual_seed(0)
    model = MLPModel((2, 3), MLP(hidden=8)).double().requires_grad_(False)
    for weight in (model.last, model.first_bias, model.second_bias):
        weight.normal_()
    past = torch.randn(5, 2, 3, dtype=torch.float64)
    found = read("lrp", model, past)
    for target in range(3):
        layers = []
        for weight, bias in ((model.first, model.first_bias), (model.second, model.second_bias)):
            layers += [linear(weight[target], bias[target, 0]), nn.ReLU()]
        alone = nn.Sequential(*layers, linear(model.last[target], torch.zeros(1).double()))
        asked = past.flatten(1).requires_grad_()
        expected = captum.attr.LRP(alone).attribute(asked)
        torch.testing.assert_close(found[:, target].flatten(1), expected, atol=1e-6, rtol=1e-6)


def linear(weight, bias):
    """A layer of these values (in, out)."""
    layer = nn.Linear(*weight.shape).double()
    layer.weight.data, layer.bias.data = weight.T.clone(), bias.clone()
    return layer
