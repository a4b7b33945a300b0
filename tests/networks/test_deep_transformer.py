import pytest
import torch

from forecause.networks.network import TensorWindow, parameter_count
from forecause.networks.paper_transformers import DeepTransformerModel
from forecause.networks.settings import DeepTransformer
from forecause.networks.training import passes


def make(settings, shape=(3, 2), seed=0):
    torch.manual_seed(seed)
    return DeepTransformerModel(shape, settings).double()


SMALL = DeepTransformer(width=8, heads=2, layers=2, static_bias=True, teacher_forcing=False)
PAPER = DeepTransformer()


@pytest.mark.parametrize(("layers", "blocks"), [(4, 4), (1, 1)])
def test_the_paper_preset_has_the_published_shape(layers, blocks):
    settings = DeepTransformer(layers=layers)
    model = DeepTransformerModel((5, 10), settings)
    d = 64
    per_block = 4 * (d * d + d) + (d * 4 * d + 4 * d) + (4 * d * d + d) + 2 * 2 * d
    embeddings = 2 * d + 10 * d + 5 * d  # value (weight, bias), node, time
    assert parameter_count(model) == blocks * per_block + embeddings + 2 * d + (d + 1)
    assert (settings.width, settings.heads, settings.static_bias) == (64, 4, False)
    training = settings.training
    assert (training.learning_rate, training.batch_size, training.warmup_steps) == (1e-3, 256, 0)


def test_a_forecast_at_a_step_never_looks_at_later_steps():
    model = make(PAPER, shape=(4, 3))
    past = torch.randn(2, 4, 3, dtype=torch.float64)
    changed = past.clone()
    changed[:, 2:] += 1.0
    before, after = model.forecasts(past), model.forecasts(changed)
    torch.testing.assert_close(before[:, :2], after[:, :2])
    assert (before[:, 2:] - after[:, 2:]).abs().min() > 1e-9


def test_a_token_sees_the_other_variables_of_its_own_step():
    model = make(SMALL)
    past = torch.randn(1, 3, 2, dtype=torch.float64, requires_grad=True)
    (slopes,) = torch.autograd.grad(model.forecasts(past)[0, 1, 0], past)
    assert (slopes[0, :2] != 0).all()
    assert (slopes[0, 2] == 0).all()


@pytest.mark.parametrize("settings", [SMALL, PAPER])
def test_the_forecast_is_the_last_of_the_forecasts_at_every_step(settings):
    model = make(settings)
    past = torch.randn(5, 3, 2, dtype=torch.float64)
    torch.testing.assert_close(model(past), model.forecasts(past)[:, -1])


def test_teacher_forcing_learns_from_every_step():
    model = make(PAPER)
    window = torch.randn(6, 4, 2, dtype=torch.float64)
    errors = model.forecasts(window[:, :-1]) - window[:, 1:]
    torch.testing.assert_close(model.loss(TensorWindow.of(window)), errors.square().mean((0, 1)))
    last_only = make(SMALL)
    expected = (last_only(window[:, :-1]) - window[:, -1]).square().mean(0)
    torch.testing.assert_close(last_only.loss(TensorWindow.of(window)), expected)


def test_attention_weights_sum_to_one_and_stay_out_of_the_future():
    model = make(SMALL)
    with torch.no_grad():
        for block in model.blocks:
            block.bias.normal_()
    for weights in model.attentions(torch.randn(2, 3, 2, dtype=torch.float64)):
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
        step = torch.arange(6) // 2
        assert (weights[..., step[None, :] > step[:, None]] == 0).all()


def plain_torch(model):
    """The same network from PyTorch's own encoder layers, with the same weights."""
    d, heads = model.settings.width, model.settings.heads
    layer = torch.nn.TransformerEncoderLayer(
        d, heads, 4 * d, dropout=0.0, activation="relu", batch_first=True, norm_first=True
    )
    stack = torch.nn.TransformerEncoder(
        layer, model.settings.layers, norm=torch.nn.LayerNorm(d), enable_nested_tensor=False
    ).double()
    for ours, theirs in zip(model.blocks, stack.layers, strict=True):
        three = (ours.query, ours.key, ours.value)
        theirs.self_attn.in_proj_weight.data = torch.cat([one.weight for one in three]).detach()
        theirs.self_attn.in_proj_bias.data = torch.cat([one.bias for one in three]).detach()
        pairs = {
            ours.mix: theirs.self_attn.out_proj,
            ours.expand: theirs.linear1,
            ours.shrink: theirs.linear2,
            ours.norm_attention: theirs.norm1,
            ours.norm_network: theirs.norm2,
        }
        for from_ours, to_theirs in pairs.items():
            to_theirs.load_state_dict(from_ours.state_dict())
    return stack


@pytest.mark.parametrize("layers", [1, 4])
def test_outputs_and_gradients_equal_those_of_plain_pytorch(layers):
    model = make(DeepTransformer(width=16, layers=layers), shape=(4, 3), seed=1)
    stack = plain_torch(model)
    rows = torch.randn(7, 5, 3, dtype=torch.float64)
    step = torch.arange(12) // 3
    tokens = (
        rows[:, :-1].flatten(1)[..., None] * model.value.weight[:, 0].detach()
        + model.value.bias.detach()
        + (model.time[:, None] + model.node[None]).flatten(0, 1).detach()
    )
    seen = stack(tokens, mask=step[None, :] > step[:, None])
    forecasts = torch.nn.functional.linear(seen, model.head.weight.detach(), model.head.bias)
    forecasts = forecasts.view(7, 4, 3)
    torch.testing.assert_close(model.forecasts(rows[:, :-1]), forecasts)
    torch.testing.assert_close(model(rows[:, :-1]), forecasts[:, -1])
    (forecasts - rows[:, 1:]).square().mean((0, 1)).sum().backward()
    model.head.zero_grad()
    model.loss(TensorWindow.of(rows)).sum().backward()
    for ours, theirs in zip(model.blocks, stack.layers, strict=True):
        three = (ours.query, ours.key, ours.value)
        expected = theirs.self_attn.in_proj_weight.grad
        torch.testing.assert_close(torch.cat([one.weight.grad for one in three]), expected)
        torch.testing.assert_close(ours.mix.weight.grad, theirs.self_attn.out_proj.weight.grad)
        torch.testing.assert_close(ours.expand.weight.grad, theirs.linear1.weight.grad)
        torch.testing.assert_close(ours.shrink.bias.grad, theirs.linear2.bias.grad)
        torch.testing.assert_close(ours.norm_attention.weight.grad, theirs.norm1.weight.grad)


def test_gradients_of_the_parts_of_a_batch_add_up_to_its_gradient():
    model = make(PAPER, shape=(20, 16))  # 320 tokens: five windows a pass
    window = TensorWindow.of(torch.randn(12, 21, 16, dtype=torch.float64))
    found = list(passes(model, window))
    assert [len(part) for part, _ in found] == [5, 5, 2]
    for part, share in found:
        (model.loss(part).sum() * share).backward()
    added = [weight.grad.clone() for weight in model.blocks.parameters()]
    model.zero_grad()
    model.loss(window).sum().backward()
    torch.testing.assert_close(added, [weight.grad for weight in model.blocks.parameters()])
