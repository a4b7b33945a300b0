"""Chronos-2, a pretrained forecaster, read like any other; only a small adapter is ever trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call

from forecause.advice import Advice
from forecause.errors import InputError
from forecause.forecast.rules import PLAIN, Rules
from forecause.networks.chronos_base import checksum, load_base, norm_weights
from forecause.networks.settings import Chronos
from forecause.networks.training import Trained

ROWS_AT_ONCE = 128  # variates in one call: its group attention costs their number squared


class ChronosModel(Trained):
    """The variates of a window are one group; the forecast is the median of the next step.

    The window is the context: its oldest step has lag max_lag, up to `patches` times the model's
    patch size (20 * 16 = 320 for the published weights). A window that is no multiple of the patch
    size is padded on the left with missing values, which have no lag. One patch comes out; its
    first step is the one-step-ahead forecast, the others are not used. Every window is normalised
    by its own mean and sd, so a window of a few steps tells little about a variable's level.

    The state dict is the adapter: node and domain embedding, norm layers and a checksum of the
    base weights.
    """

    read_windows = 100  # a gradient of the published model takes seconds
    asked_inputs = 50_000  # three forecasts each, which take hours on one core
    settings: Chronos
    base: nn.Module

    def __init__(self, shape: tuple[int, int], settings: Chronos) -> None:
        super().__init__(shape, settings)
        base, about = load_base(settings.weights)
        self.longest = min(settings.patches * about.patch_size, about.context_length)
        if self.max_lag > self.longest:
            raise InputError(
                f"The context of the forecaster chronos has at most {self.longest} steps, found "
                f"a largest lag of {self.max_lag}; use a smaller lag or more patches."
            )
        self.median = about.median
        # Not registered: what is frozen is neither trained nor saved, and never leaves eval mode.
        self.__dict__["base"] = base
        self.node = nn.Parameter(settings.node_scale * torch.randn(self.n_variables, about.width))
        # Learned only: a random one would make the zero-shot answer differ between domains.
        self.domain = nn.Parameter(torch.zeros(self.domains, *self.node.shape))
        self.norms = nn.ParameterDict(
            {_key(name): weight.clone() for name, weight in norm_weights(base).items()}
        )
        self.register_buffer("base_checksum", checksum(base))

    def forward(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        if rules != PLAIN:
            raise InputError(
                "Relevance propagation cannot be read from the forecaster 'chronos', whose layers "
                f"are another package's; use {Advice('readout', 'gradient')}."
            )
        return self.without_forbidden(past, lambda seen: self._in_parts(seen, domain))

    def jacobian(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        """Part by part, so that only one part's activations are in memory."""
        own = super().jacobian
        parts = self._parts(past, domain)
        return torch.cat([own(part, rules, where).detach() for part, where in parts])

    def _in_parts(self, past: Tensor, domain: Tensor | None) -> Tensor:
        return torch.cat([self._forecast(*part) for part in self._parts(past, domain)])

    def _parts(self, past: Tensor, domain: Tensor | None) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Past and domain of as many windows as go into one call."""
        for start in range(0, len(past), self._windows_at_once):
            own = slice(start, start + self._windows_at_once)
            yield past[own], None if domain is None else domain[own]

    @property
    def _windows_at_once(self) -> int:
        return max(1, ROWS_AT_ONCE // self.n_variables)

    def _forecast(self, past: Tensor, domain: Tensor | None) -> Tensor:
        """Median forecast (batch, variable); each window is a group of its own."""
        batch, variables = len(past), self.n_variables
        context = past.transpose(1, 2).flatten(0, 1)  # (batch * variable, step)
        groups = torch.arange(batch, device=past.device).repeat_interleave(variables)
        adapter = {name.replace("/", "."): weight for name, weight in self.norms.items()}
        adapter["encoder.identity"] = self._identity(batch, domain).flatten(0, 1)
        asked = {"context": context, "group_ids": groups, "num_output_patches": 1}
        quantiles = functional_call(self.base, adapter, kwargs=asked).quantile_preds
        return cast(Tensor, quantiles)[:, self.median, 0].unflatten(0, (batch, variables))

    def _identity(self, batch: int, domain: Tensor | None) -> Tensor:
        """What tells the variates of each window apart, (batch, variable, width)."""
        if self.domains:
            return self.node + self.domain[domain]
        return self.node.expand(batch, -1, -1)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> ChronosModel:
        """Move the base along with the adapter."""
        move: Any = self.base._apply
        move(fn, recurse)
        own: Any = super()._apply
        return cast(ChronosModel, own(fn, recurse))

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, *details: Any
    ) -> None:
        """An adapter is worth nothing on other weights than it was made for."""
        made_for = state_dict.get(f"{prefix}base_checksum")
        if made_for is not None and int(made_for) != int(self.get_buffer("base_checksum")):
            raise InputError(
                f"The adapter was made for other weights than those in {self.settings.weights!r} "
                "now; put the earlier ones back there, or fit again."
            )
        super()._load_from_state_dict(state_dict, prefix, *details)


def _key(name: str) -> str:
    """A parameter's name without the dots that torch refuses."""
    return name.replace(".", "/")
