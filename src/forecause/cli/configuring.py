"""A configuration from the command line: a file, `--set group.name=value`, and flags."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from forecause.common.bounded import parse_json, text_of
from forecause.config import GROUP_OF, GROUPS, Config, ForecasterSpec, check_names
from forecause.config.advice import as_flag
from forecause.errors import InputError

EXAMPLE = "such as --set data.gaps=drop"


def configuration(
    file: Path | None, settings: Sequence[str] | None, flags: Mapping[str, Any]
) -> Config:
    """What a file says, replaced by what `--set` and the flags say; None is not asked for."""
    base = read_config(file) if file is not None else None
    asked = {name: value for name, value in flags.items() if value is not None}
    chosen = parse_settings(settings or ())
    for name in asked.keys() & chosen.keys():
        flag = as_flag(name, asked[name])
        raise InputError(f"{name} is given twice, by {flag} and by --set; leave one of them out.")
    own = chosen.pop("forecaster settings", None)
    asked |= chosen
    if own is not None:
        asked["forecaster"] = _with_settings(asked, base, own)
    return Config.of(base, **asked)


def read_config(path: Path) -> Config:
    """The configuration in a run.json, or in a file that holds its settings alone."""
    text = text_of(path)
    try:
        held = parse_json(text, strict=False)
    except (ValueError, RecursionError):
        raise InputError(f"{str(path)!r} is no JSON file with options.") from None
    held = held.get("settings", held) if isinstance(held, dict) else held
    if not isinstance(held, dict):
        raise InputError(f"{str(path)!r} holds no options by name.")
    return Config.from_json(held)


def parse_settings(texts: Sequence[str]) -> dict[str, Any]:
    """`group.name=value` as options by their plain names; values are JSON, or else text."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        group, dot, rest = name.strip().partition(".")
        if not equals or not dot:
            raise InputError(f"Expected --set GROUP.NAME=VALUE, {EXAMPLE}, found {text!r}.")
        check_names([group], [*GROUPS, "forecaster", "thresholds"], "group of options")
        if group == "forecaster":
            found.setdefault("forecaster settings", {})[rest] = _value(value)
        elif group == "thresholds":
            part, dot, threshold = rest.partition(".")
            if not dot:
                raise InputError(
                    f"Expected --set thresholds.GROUP.NAME=VALUE, such as "
                    f"thresholds.edges.least_share=0.001, found {text!r}."
                )
            numbers = found.setdefault("thresholds", {}).setdefault(part, {})
            numbers[threshold] = _value(value)
        else:
            if GROUP_OF.get(rest, group) != group:
                raise InputError(f"{rest} is an option of {GROUP_OF[rest]}, not of {group}.")
            check_names([rest], GROUPS[group].model_fields, f"option of {group}:")
            found[rest] = _value(value)
    return found


def _with_settings(
    asked: Mapping[str, Any], base: Config | None, own: Mapping[str, Any]
) -> ForecasterSpec:
    """The forecaster asked for by name, with these settings of its own."""
    usual = base.forecasting if base is not None else None
    kind = asked.get("forecaster", usual.forecaster if usual else "auto")
    preset = asked.get("preset", usual.preset if usual else "default")
    if kind == "auto":
        raise InputError("Settings of a forecaster need one by name: --forecaster mlp, say.")
    spec = kind if isinstance(kind, ForecasterSpec) else ForecasterSpec.named(kind)
    settings = spec if isinstance(spec, ForecasterSpec) else spec.of_preset(preset)
    check_names(own, type(settings).model_fields, f"setting of {settings.kind}:")
    return type(settings).checked(**{**dict(settings), **own})


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
