"""The transformer that reads a context and writes a forecaster's coefficients; its weights file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from forecause.common.files import write_whole
from forecause.errors import InputError
from forecause.networks.pretrained.context import ABOUT, SOLUTIONS, TERMS, Context, terms
from forecause.networks.settings import ContextSettings

# Time and memory:
TOKENS_AT_ONCE = 20_000  # of all systems and targets together


class Equations(NamedTuple):
    """A forecaster of each of several systems: a sum of curves, one per target, step and source."""

    weight: Tensor  # (system, target, step, source, term)
    intercept: Tensor  # (system, target)

    @classmethod
    def of(cls, weight: Tensor, context: Context) -> Equations:
        """Those with weights (system, target, token, term), right on average in their context."""
        inputs, targets = (torch.from_numpy(mean).to(weight) for mean in context.means)
        intercept = targets - (weight.flatten(2) @ inputs[..., None])[..., 0]
        return cls(weight.unflatten(2, context.shape), intercept)

    def forecast(self, past: Tensor) -> Tensor:
        """past (system, window, step, source) -> (system, window, target)."""
        curves = torch.einsum("bnlsk,btlsk->bnt", terms(past), self.weight)
        return curves + self.intercept[:, None]


class Block(nn.Module):
    """Pre-LayerNorm attention among the tokens of a target and a ReLU network, both residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.expand, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """x (target, token, width)."""
        parts = self.query_key_value(self.norm_attention(x)).chunk(3, dim=-1)
        query, key, value = (p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in parts)
        mixed = scaled_dot_product_attention(query, key, value)
        x = x + self.mix(mixed.transpose(1, 2).flatten(2))
        return x + self.shrink(torch.relu(self.expand(self.norm_network(x))))


class ContextNetwork(nn.Module):
    """One token per target, source and lag; a target's tokens attend to each other.

    A token starts from what least squares in context says of it, and ends as gates: how much of
    each least-squares solution to believe, and how much of none, for each term. They add up to 1,
    so that it never says more than a solution does. Untrained, it believes all of them equally.
    """

    def __init__(self, settings: ContextSettings) -> None:
        super().__init__()
        width = settings.width
        self.settings = settings
        self.about = nn.Linear(ABOUT, width)
        self.source = nn.Linear(settings.node_width, width, bias=False)
        self.target = nn.Linear(settings.node_width, width, bias=False)
        self.blocks = nn.ModuleList(Block(width, settings.heads) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(width)
        self.gates = nn.Linear(width, (SOLUTIONS + 1) * TERMS)
        with torch.no_grad():
            self.gates.weight.mul_(0.1)
            self.gates.bias.zero_()

    def forward(self, context: Context, node: Tensor) -> Equations:
        """The equations of each system of a context.

        node (system, variable, node_width) tells the variables of a system apart.
        """
        steps, _ = context.shape
        solutions, about = (part.to(node) for part in context.read())
        source = self.source(node).repeat(1, steps, 1)[:, None]
        x = self.about(about) + source + self.target(node)[:, :, None]
        x = x.flatten(0, 1)  # (system * target, token, width)
        at_once = max(1, TOKENS_AT_ONCE // x.shape[1])
        logits = torch.cat([self._logits(part) for part in x.split(at_once)])
        logits = logits.view(*solutions.shape[:3], SOLUTIONS + 1, TERMS)
        gates = logits.softmax(3)[:, :, :, :-1]
        weight = (gates * solutions).sum(3)  # (system, target, token, term)
        return Equations.of(weight, context)

    def _logits(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.gates(self.norm(x))
        return logits


FORMAT = "forecause.pretrained/1"
WEIGHTS = "weights.safetensors"  # its name in a folder


def save_network(network: ContextNetwork, path: Path, history: Mapping[str, Any]) -> None:
    """Write the network and, as `history`, how it was trained."""
    about = {
        "format": FORMAT,
        "network": network.settings.model_dump_json(),
        "history": json.dumps(dict(history)),
    }
    save_whole({name: w.contiguous() for name, w in network.state_dict().items()}, path, about)


def save_whole(tensors: dict[str, Tensor], path: Path, about: dict[str, str]) -> None:
    """Write a file at once: whoever stops the process leaves the old one or the new one."""
    write_whole(path, save(tensors, metadata=about))


def load_network(weights: str | Path) -> ContextNetwork:
    """The network in a file, or in the folder that `forecause pretrain` wrote."""
    path = Path(weights).expanduser()
    path = path / WEIGHTS if path.is_dir() else path
    tensors, about = read_whole(path, FORMAT, "weights written by forecause pretrain")
    try:
        network = ContextNetwork(ContextSettings.model_validate_json(about.get("network", "")))
        network.load_state_dict(tensors)
    except (ValidationError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".:")
        raise InputError(f"The weights in {str(path)!r} are damaged: {reason}.") from None
    return network


def read_whole(path: Path, form: str, what: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and description of a file of this format."""
    if not path.is_file():
        raise InputError(f"Expected {what}, found no file {str(path)!r}.")
    try:
        with safe_open(path, framework="pt") as file:
            about: dict[str, str] = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise InputError(
            f"Expected {what} in {str(path)!r}, found another file: {reason}."
        ) from None
    if about.get("format") != form:
        written = about.get("format", "none")
        raise InputError(f"Expected {what} in {str(path)!r}, found the format {written}.")
    return tensors, about
