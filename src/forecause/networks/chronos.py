"""Chronos-2, a pretrained forecaster: frozen, read like any other; an adapter may be trained."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call

from forecause.config.advice import Advice
from forecause.config.spec import NotFetched, may_fetch
from forecause.errors import InputError, MissingExtra
from forecause.forecast.forecaster import PLAIN, Rules
from forecause.networks.settings import Chronos
from forecause.networks.training import Trained

ARCHITECTURE = "Chronos2Model"
HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")  # owner/name


class NamedVariates(nn.Module):
    """An encoder whose tokens also carry their variate's node embedding.

    Without it the variates of a group are a set: the model cannot tell one from another.
    """

    def __init__(self, encoder: nn.Module, width: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.register_buffer("identity", torch.zeros(1, width))  # (variate, width), or for all

    def forward(self, inputs_embeds: Tensor, **others: Any) -> Any:
        """inputs_embeds (variate, patch, width)."""
        identity = self.get_buffer("identity")[:, None]
        return self.encoder(inputs_embeds=inputs_embeds + identity, **others)


class ConstantStatistics(nn.Module):
    """An instance norm whose location and scale are constants to the backward pass.

    Otherwise every step of a series moves its mean and sd, so it would seem to matter at every
    lag: a series' slopes on itself would sum to one whatever it does.
    """

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor, loc_scale: tuple[Tensor, Tensor] | None = None) -> Any:
        if loc_scale is None:
            with torch.no_grad():
                _, loc_scale = self.norm(x)
        return self.norm(x, loc_scale)

    def inverse(self, x: Tensor, loc_scale: tuple[Tensor, Tensor], *options: Any) -> Any:
        inverse: Any = self.norm.inverse
        return inverse(x, loc_scale, *options)


def load_base(weights: str) -> Any:
    """The frozen model in `weights`, a local folder or a hub id."""
    model = _pretrained(weights).float().eval().requires_grad_(False)
    model.encoder = NamedVariates(model.encoder, model.model_dim)
    model.instance_norm = ConstantStatistics(model.instance_norm)
    return model


def norm_weights(base: nn.Module) -> dict[str, Tensor]:
    """The gains of all norm layers by their name in the model."""
    from chronos.chronos2.layers import Chronos2LayerNorm

    return {
        f"{name}.weight": module.weight.detach()
        for name, module in base.named_modules()
        if isinstance(module, Chronos2LayerNorm)
    }


def checksum(base: nn.Module) -> Tensor:
    """A whole number that differs between different weights and is the same on every machine."""
    total = torch.zeros((), dtype=torch.int64)
    for place, weight in enumerate(base.parameters(), start=1):
        total += place * weight.detach().cpu().view(torch.int32).sum(dtype=torch.int64)
    return total


def _pretrained(weights: str) -> Any:
    try:
        from chronos.chronos2 import Chronos2Model
        from chronos.chronos2.config import Chronos2CoreConfig
    except ModuleNotFoundError:
        raise MissingExtra("chronos-forecasting", "chronos") from None
    from safetensors import SafetensorError

    if not Path(weights).is_dir() and not HUB_ID.fullmatch(weights):
        raise InputError(
            f"There is no folder {weights!r}; give a folder with config.json and "
            "model.safetensors, or a hub id such as amazon/chronos-2."
        )
    if not may_fetch() and not Path(weights).is_dir():
        weights = _on_this_machine(weights)
    try:
        with _no_progress_bars():
            config = Chronos2CoreConfig.from_pretrained(weights)
            _check_architecture(config, weights)
            # Anything but safetensors may run code when it is read.
            model, report = Chronos2Model.from_pretrained(
                weights, config=config, use_safetensors=True, output_loading_info=True
            )
    except (OSError, SafetensorError) as error:
        raise InputError(_not_found(weights, error)) from None
    absent = sorted(report["missing_keys"])
    if absent:
        raise InputError(
            f"The weights in {weights!r} are not whole: {absent[0]} is missing; fetch them again."
        )
    return model


def _on_this_machine(hub_id: str) -> str:
    """The folder that an earlier call fetched; the library itself would ask the hub even so."""
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(hub_id, "config.json")
    if not isinstance(cached, str):
        raise NotFetched(
            f"The weights {hub_id!r} of the run are not on this machine, and loading fetches "
            "nothing unless it is told to: fc.load(folder, fetch=True)."
        )
    return str(Path(cached).parent)


def _check_architecture(config: Any, weights: str) -> None:
    architectures = getattr(config, "architectures", None) or ["nothing"]
    if ARCHITECTURE not in architectures or not hasattr(config, "chronos_config"):
        raise InputError(
            f"Expected weights of the architecture {ARCHITECTURE} in {weights!r}, found "
            f"{architectures[0]}; give a folder or a hub id of a Chronos-2 model."
        )


def _not_found(weights: str, error: Exception) -> str:
    """What to say of weights that cannot be loaded."""
    if Path(weights).is_dir():
        reason = str(error).strip().splitlines()[0].rstrip(".")
        return (
            f"Expected a Chronos-2 model, config.json and model.safetensors, in the folder "
            f"{weights!r}: {reason}."
        )
    return (
        f"There are no Chronos-2 weights at {weights!r}: it is no folder here, and as a hub id it "
        "was not found or the hub cannot be reached; give a folder with config.json and "
        "model.safetensors, or a hub id such as amazon/chronos-2 where there is a network."
    )


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Loading shows bars of its own, which would run through the command's."""
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging  # partly untyped
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


# Time and memory:
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
        base = load_base(settings.weights)
        config = base.chronos_config
        self.longest = min(settings.patches * config.input_patch_size, config.context_length)
        if self.max_lag > self.longest:
            raise InputError(
                f"The context of the forecaster chronos has at most {self.longest} steps, found "
                f"a largest lag of {self.max_lag}; use a smaller lag or more patches."
            )
        distance = [abs(level - 0.5) for level in config.quantiles]
        self.median = distance.index(min(distance))
        # Not registered: what is frozen is neither trained nor saved, and never leaves eval mode.
        self.__dict__["base"] = base
        self.node = nn.Parameter(
            settings.node_scale * torch.randn(self.n_variables, base.model_dim)
        )
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
