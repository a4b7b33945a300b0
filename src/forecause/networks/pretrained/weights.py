"""Weights of a pretrained network: one safetensors file that says what it is. No code is run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from forecause.errors import InputError
from forecause.files import write_whole
from forecause.networks.pretrained.network import ContextNetwork
from forecause.networks.settings import ContextSettings

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
        found = about.get("format", "none")
        raise InputError(f"Expected {what} in {str(path)!r}, found the format {found}.")
    return tensors, about
