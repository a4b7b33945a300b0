import pytest
import torch
from torch.nn import functional

from forecause.networks.linear import quick_linear


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 1, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_quick_linear_map_and_its_slopes_are_those_of_torch(shape, dtype, monkeypatch):
    monkeypatch.setattr("forecause.networks.linear._is_amd", lambda: True)
    torch.manual_seed(0)
    inputs = (torch.randn(*shape, 16), torch.randn(24, 16), torch.randn(24))
    parts = [part.to(dtype).requires_grad_() for part in inputs]
    answers = [linear(*parts) for linear in (quick_linear, functional.linear)]
    ahead = torch.randn_like(answers[0])
    slopes = [torch.autograd.grad(answer, parts, ahead) for answer in answers]
    torch.testing.assert_close(answers[0], answers[1])
    for ours, theirs in zip(*slopes, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_without_onednn_the_usual_map_is_taken(monkeypatch):
    monkeypatch.setattr("forecause.networks.linear._has_onednn", lambda _: False)
    x, weight, bias = torch.randn(3, 4), torch.randn(2, 4), torch.randn(2)
    assert torch.equal(quick_linear(x, weight, bias), functional.linear(x, weight, bias))
