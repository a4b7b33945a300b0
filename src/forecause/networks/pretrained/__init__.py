"""A forecaster that a pretrained transformer writes after reading the training windows."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from forecause.data.windows import Windows
from forecause.forecast.forecaster import PLAIN, FitData, Rules
from forecause.networks.backward import activation
from forecause.networks.network import TensorWindow
from forecause.networks.pretrained.context import TERMS, Context, terms
from forecause.networks.pretrained.network import ContextNetwork, Equations, load_network
from forecause.networks.settings import Pretrained
from forecause.networks.training import Trained, train

OWN_WEIGHTS = Path(__file__).with_name("weights.safetensors")  # forecause pretrain --minutes 17


class PretrainedModel(Trained):
    """X_i,t = intercept + sum over sources and lags of a curve of X_source,t-lag.

    The curves are what the transformer makes of the training windows, its context: no step of
    training is needed. Fine-tuning teaches it to write, from one half of a batch, equations that
    forecast the other half. With `domains`, each has a context and equations of its own.
    """

    logits: ClassVar[bool] = False
    settings: Pretrained

    def __init__(self, shape: tuple[int, int], settings: Pretrained) -> None:
        if settings.network is None:
            network = load_network(settings.weights or OWN_WEIGHTS)
            settings = settings.model_copy(update={"network": network.settings})
        else:
            network = ContextNetwork(settings.network)
        super().__init__(shape, settings)
        self.network = network
        width = network.settings.node_width
        self.node = nn.Parameter(settings.node_scale * torch.randn(self.n_variables, width))
        if settings.tuned == "norms":
            network.requires_grad_(False)
            for module in network.modules():
                if isinstance(module, nn.LayerNorm):
                    module.requires_grad_(True)
        systems, p = max(self.domains, 1), self.n_variables
        self.register_buffer("weight", torch.zeros(systems, p, self.max_lag, p, TERMS))
        self.register_buffer("intercept", torch.zeros(systems, p))
        self.contexts: list[Context] = []  # of each domain, while the network is trained

    @property
    def unfitted_settings(self) -> Pretrained:
        return self.settings.model_copy(update={"network": None})  # loads the weights again

    def forward(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        weight, intercept = self._equations()
        domain = self._domains_of(past, domain)
        if rules.linearise:
            each = past[:, None].expand(-1, self.n_variables, -1, -1)
            curves = activation(lambda x: (terms(x) * weight[domain]).sum(-1), each, rules)
            return curves.sum((2, 3)) + intercept[domain]
        forecasts = torch.einsum("blsk,dtlsk->bdt", terms(past), weight) + intercept
        return forecasts[torch.arange(len(past), device=past.device), domain]

    def fit(self, fit_data: FitData) -> None:
        fit_data.progress.step("reading the context", 0.0)
        parts = [fit_data.of_domain(d) for d in range(self.domains)] or [fit_data]
        self.contexts = [self._context(part.windows) for part in parts]
        if self.settings.training.max_steps:
            train(self, fit_data, self.settings.training)
        else:
            self.estimate_noise(fit_data.held_out)
        with torch.no_grad():
            weight, intercept = self._equations()
        self.get_buffer("weight").copy_(weight)
        self.get_buffer("intercept").copy_(intercept)
        self.contexts = []

    def loss(self, window: TensorWindow) -> Tensor:
        """Mean error per target, (variable,), of equations that one half says of the other."""
        half = (len(window) + 1) // 2
        equations = self._written(Context.of(window[:half].rows[None]))
        asked = window[half:] if len(window) > 1 else window
        forecasts = equations.forecast(asked.past[None])[0]
        return self.likelihood.errors(forecasts[..., None], asked.target).mean(0)

    def _domains_of(self, past: Tensor, domain: Tensor | None) -> Tensor:
        if self.domains and domain is not None:
            return domain
        return torch.zeros(len(past), dtype=torch.long, device=past.device)

    def _equations(self) -> Equations:
        """Those of every domain: as they were fitted, or while fitting as the network says now."""
        if not self.contexts:
            return Equations(self.get_buffer("weight"), self.get_buffer("intercept"))
        each = [self._written(context) for context in self.contexts]
        return Equations(
            torch.cat([e.weight for e in each]), torch.cat([e.intercept for e in each])
        )

    def _context(self, windows: Windows) -> Context:
        device = self.node.device
        batches = (
            Context.of(TensorWindow.drawn(b, device).rows[None]) for b in windows.batches(4096)
        )
        total = next(batches)
        for part in batches:
            total = total + part
        return total

    def _written(self, context: Context) -> Equations:
        """The network's equations; of a target's context, forbidden inputs are left out."""
        allowed = self.get_buffer("allowed")
        if bool(allowed.all()):
            equations: Equations = self.network(context, self.node[None])
            return equations
        kinds, kind_of = torch.unique(allowed, dim=0, return_inverse=True)
        each = [self.network(context.only(kind), self.node[None]) for kind in kinds]
        places = list(enumerate(kind_of.tolist()))
        return Equations(
            torch.stack([each[k].weight[:, i] for i, k in places], dim=1),
            torch.stack([each[k].intercept[:, i] for i, k in places], dim=1),
        )
