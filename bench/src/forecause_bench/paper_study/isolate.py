"""Which part of the LRP rule favours the own last value: python -m ...paper_study.isolate.

Reads the trained weights of finished fits with one part of the rule at a time: halved attention,
linearised norms and activations, a halved residual beside attention or beside the network.
"""

from __future__ import annotations

import argparse
import json
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from safetensors.numpy import load_file
from torch import Tensor

from forecause.data.windows import Windows
from forecause.forecast.forecaster import Forecaster, Rules
from forecause.graph.axes import by_lag
from forecause.networks.backward import activation, layer_norm, scale_gradient
from forecause.networks.network import Network
from forecause.networks.paper_transformers import Block, DeepTransformerModel, Prior
from forecause.networks.settings import DeepTransformer
from forecause_bench.document import Block as DocumentBlock
from forecause_bench.document import Heading, Lines, Paragraph, Table, Text, to_markdown
from forecause_bench.paper_study.answers import Summary
from forecause_bench.paper_study.queue import TRANSFORMER, Fit, in_order
from forecause_bench.paper_study.scores import auroc, metrics, own_last_share, top_k
from forecause_bench.paper_study.store import STORE, WHOLE, Array, StoredFit, packed, write
from forecause_bench.paper_study.systems import recorded

FOLDER = "isolated"
READ = 150  # windows
HALF, QUARTER = 0.5, 0.25
RULES: dict[str, tuple[Rules, float]] = {  # and the factor on the residual beside the network
    "nothing (input x gradient)": (Rules(), 1.0),
    "linearised": (Rules(linearise=True), 1.0),
    "attention halved": (Rules(query_key=QUARTER, value=HALF), 1.0),
    "attention halved, linearised: AttnLRP": (Rules(QUARTER, HALF, linearise=True), 1.0),
    "attention and its residual halved": (Rules(QUARTER, HALF, HALF), 1.0),
    "attention and its residual halved, linearised: balanced": (
        Rules(QUARTER, HALF, HALF, linearise=True),
        1.0,
    ),
    "attention and both residuals halved, linearised": (
        Rules(QUARTER, HALF, HALF, linearise=True),
        HALF,
    ),
}


def isolated(fit: Fit, weights: Path, windows_read: int = READ) -> dict[str, list[float]]:
    """Mean |input x slope| under every rule, (target, source, lag) flattened."""
    panel, _ = recorded(fit.rows, fit.seed, **fit.settings)
    windows = Windows.of(panel, fit.settings["max_lag"])
    model = DeepTransformer(layers=fit.layers).build(windows.shape)
    assert isinstance(model, Network)
    model.load_state(load_file(weights))
    sample = windows.sample(windows_read, np.random.default_rng(fit.seed))
    found = {}
    for name, (rules, beside_network) in RULES.items():
        asked = model if beside_network == 1.0 else _with_halved_networks(model)
        found[name] = packed(_relevance(asked, sample, rules))
    return found


class Halved(Block):
    """A block whose residual beside the network is halved in the backward pass too."""

    def forward(self, x: Tensor, prior: Prior, asked: int, rules: Rules) -> Tensor:
        normed = layer_norm(self.norm_attention, x, rules)
        value = scale_gradient(self._heads(self.value(normed)), rules.value)
        mixed = self.attention(normed, prior, asked, rules) @ value
        residual = scale_gradient(x[:, -asked:], rules.residual)
        middle = residual + self.mix(mixed.transpose(1, 2).flatten(2))
        expanded = self.expand(layer_norm(self.norm_network, middle, rules))
        hidden = activation(torch.relu, expanded, rules)
        return scale_gradient(middle, HALF) + self.shrink(hidden)


def page(store: Path) -> list[DocumentBlock]:
    """Means over the fits that were read, by depth."""
    reads = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))["relevance"]
        for path in sorted((store / FOLDER).glob("*.json"))
    }
    fits = [StoredFit.read(store / f"{name}.json") for name in reads]
    blocks: list[DocumentBlock] = [
        Heading("Which part of the LRP rule favours the own last value", 1),
        Lines(
            [
                "Command: `python -m forecause_bench.paper_study.isolate --weights FOLDER`",
                f"{len(fits)} fits on systems with one graph, {READ} windows each",
                "Share of the own last value: of targets whose cause it is not",
            ]
        ),
    ]
    for layers in sorted({fit.layers for fit in fits}, reverse=True):
        own = [fit for fit in fits if fit.layers == layers]
        told = f"{layers} layer{_s(layers)}, {len(own)} fit{_s(len(own))}"
        named = ", ".join(fit.content["name"] for fit in own)
        blocks += [Heading(told, 2), _table(own, reads), Paragraph(f"Fits: {named}.")]
    return blocks


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _table(fits: list[StoredFit], reads: dict[str, dict[str, list[float]]]) -> Table:
    body = []
    for rule in RULES:
        measured = [
            _measured(np.array(reads[fit.content["name"]][rule]).reshape(fit.shape), fit)
            for fit in fits
        ]
        columns = [Summary.of([one[place] for one in measured]) for place in range(3)]
        body.append([Text(rule), *[Text(f"{c.mean:.3f}" if c else "") for c in columns]])
    columns_named = ["share of the own last value", "AUROC", "F1, top 3"]
    return Table(["what the backward pass does", *columns_named], body)


def main() -> None:
    """Read the fits that were not read yet, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--weights", type=Path, help="folder with the weights of the fits")
    parser.add_argument("--most", type=int, help="stop after so many fits")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/paper-lrp-rule"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    asked_for = in_order() if asked.weights else ()
    missing = [fit for fit in asked_for if _wanted(fit, asked.store, asked.weights)]
    for fit in missing[: asked.most]:
        found = isolated(fit, asked.weights / f"{fit.name}.safetensors")
        write(asked.store / FOLDER / f"{fit.name}.json", {"relevance": found})
        Console().print(fit.name)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "table.md").write_text(to_markdown(page(asked.store)), encoding="utf-8")


def _with_halved_networks(model: Network) -> Network:
    """The same weights in blocks of the other kind."""
    twin, tokens = deepcopy(model.module), model.max_lag * model.n_variables
    assert isinstance(twin, DeepTransformerModel)
    for place, block in enumerate(twin.blocks):
        halved = Halved(tokens, twin.settings)
        halved.load_state_dict(block.state_dict())
        twin.blocks[place] = halved
    return Network(twin)


def _wanted(fit: Fit, store: Path, weights: Path) -> bool:
    """A finished transformer without segments whose weights are there, not read yet."""
    kept = (weights / f"{fit.name}.safetensors").exists() and (store / f"{fit.name}.json").exists()
    kept &= "segments" not in fit.settings and fit.network == TRANSFORMER
    return kept and not (store / FOLDER / f"{fit.name}.json").exists()


def _relevance(model: Forecaster, sample: Windows, rules: Rules) -> Array:
    sums = [
        np.abs(model.jacobian(batch.past, rules) * batch.past[:, None]).sum(0)
        for batch in sample.batches(64)
    ]
    return by_lag(np.stack(sums).astype(np.float64).sum(0) / len(sample))


def _measured(relevance: Array, fit: StoredFit) -> tuple[float, float, float]:
    true = fit.truths[WHOLE]
    f1 = metrics(top_k(relevance), true)["f1"]
    return own_last_share(relevance, true), auroc(relevance, true), f1


if __name__ == "__main__":
    main()
