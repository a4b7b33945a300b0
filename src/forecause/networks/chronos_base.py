"""The pretrained Chronos-2 model: loaded, frozen, and made ready to be read by gradients."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from forecause.config.spec import NotFetched, may_fetch
from forecause.errors import InputError, MissingExtra

ARCHITECTURE = "Chronos2Model"
HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")  # owner/name


@dataclass(frozen=True)
class About:
    """What the forecaster must know of the model it uses."""

    width: int  # of a token
    patch_size: int
    context_length: int
    median: int  # its place among the quantiles


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


def load_base(weights: str) -> tuple[nn.Module, About]:
    """The frozen model in `weights`, a local folder or a hub id, and what must be known of it."""
    model = _pretrained(weights).float().eval().requires_grad_(False)
    config = model.chronos_config
    distance = [abs(level - 0.5) for level in config.quantiles]
    about = About(
        width=model.model_dim,
        patch_size=config.input_patch_size,
        context_length=config.context_length,
        median=distance.index(min(distance)),
    )
    model.encoder = NamedVariates(model.encoder, about.width)
    model.instance_norm = ConstantStatistics(model.instance_norm)
    return model, about


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
    found = getattr(config, "architectures", None) or ["nothing"]
    if ARCHITECTURE not in found or not hasattr(config, "chronos_config"):
        raise InputError(
            f"Expected weights of the architecture {ARCHITECTURE} in {weights!r}, found "
            f"{found[0]}; give a folder or a hub id of a Chronos-2 model."
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
