"""Saved runs: a folder of JSON, CSV and safetensors. Loading one never runs code."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from forecause._version import __version__
from forecause.config import Config
from forecause.data.summary import DataSummary
from forecause.data.variables import Label
from forecause.diagnostics.alerts import Alert
from forecause.diagnostics.power import Power
from forecause.diagnostics.regimes import Regimes
from forecause.discovery import Discovery
from forecause.errors import InputError
from forecause.forecast.selection import build_saved
from forecause.graph.axes import labelled_together
from forecause.graph.lagged import LaggedGraph

FORMAT = "forecause.run/1"
ARRAYS = ("mean", "sd", "latest", "sample")  # fields of DataSummary kept with the weights
RUN, GRAPH, EDGES, MODEL = "run.json", "graph.json", "edges.csv", "model.safetensors"
EVIDENCE, PAGE, POWER = "report.json", "report.html", "power.json"


def save(found: Discovery, folder: Path) -> Path:
    """Write the run into `folder`, all files or none."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder to save the run in.")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".forecause-") as scratch:
        made = Path(scratch)
        found.graph.to_json(made / GRAPH)
        found.graph.to_csv(made / EDGES)
        (made / RUN).write_text(json.dumps(_describe(found), indent=2) + "\n", encoding="utf-8")
        save_file(_tensors(found), made / MODEL)
        (made / EVIDENCE).write_text(json.dumps(found.evidence) + "\n", encoding="utf-8")
        found.report(made / PAGE)
        if found.measured_power:
            power = json.dumps(found.measured_power.to_dict(), indent=2)
            (made / POWER).write_text(power + "\n", encoding="utf-8")
        folder.mkdir(exist_ok=True)
        (folder / POWER).unlink(missing_ok=True)  # of an older run
        for file in made.iterdir():
            shutil.move(file, folder / file.name)
    return folder


def load(path: str | Path) -> Any:
    """A saved run as a Discovery, or of a report's page the LaggedGraph with its scores.

    A damaged or foreign folder or page is an InputError.
    """
    if Path(path).suffix.lower() in (".html", ".htm") and not Path(path).is_dir():
        from forecause.report.page import read_report

        return read_report(Path(path))
    return load_run(Path(path))


def load_run(folder: Path) -> Discovery:
    """Read a saved run."""
    missing = [name for name in (RUN, GRAPH, MODEL) if not (folder / name).is_file()]
    if missing:
        raise InputError(f"{folder} is not a saved run: {missing[0]} is missing.")
    try:
        about = json.loads((folder / RUN).read_text(encoding="utf-8"))
        if not isinstance(about, dict) or about.get("format") != FORMAT:
            raise InputError(f"{folder / RUN} is not a saved run of the format {FORMAT}.")
        return _restore(folder, about)
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"The saved run {folder} is damaged: {_first_line(error)}.") from None


def _describe(found: Discovery) -> dict[str, Any]:
    data = {
        field.name: getattr(found.data, field.name)
        for field in fields(DataSummary)
        if field.name not in (*ARRAYS, "labels")
    }
    data["labels"] = [asdict(label) for label in found.data.labels]
    return {
        "format": FORMAT,
        "version": __version__,
        "settings": found.config.to_json(),
        "data": data,
        "forecaster": {
            "kind": found.forecaster.kind,
            "settings": found.forecaster.settings.model_dump(mode="json"),
        },
        "losses": _columns(found.losses),
        "nll": None if found.nll is None else _columns(found.nll),
        "alerts": [asdict(alert) for alert in found.alerts],
        "regimes": found.regimes.to_dict() if found.regimes else None,
        "relevance": {
            "names": [str(name) for name in found.relevance.data_vars],
            "attributes": dict(found.relevance.attrs),
        },
    }


def _tensors(found: Discovery) -> dict[str, torch.Tensor]:
    weights = {f"model.{k}": v.contiguous() for k, v in found.forecaster.state_dict().items()}
    data = {f"data.{name}": _tensor(getattr(found.data, name)) for name in ARRAYS}
    statistics = {
        f"relevance.{name}": _tensor(values.values)
        for name, values in found.relevance.data_vars.items()
    }
    return weights | data | statistics


def _restore(folder: Path, about: dict[str, Any]) -> Discovery:
    tensors = load_file(folder / MODEL)
    graph = LaggedGraph.from_json(folder / GRAPH)
    kept = about["data"] | {name: tensors[f"data.{name}"].numpy() for name in ARRAYS}
    for name in ("variables", "series_names", "notes", "latest_domain"):
        kept[name] = tuple(kept[name])
    kept["labels"] = tuple(
        Label(one["name"], tuple(one["levels"]), one["first"]) for one in kept.get("labels", [])
    )
    data = DataSummary(**_with_sample_domain(kept))
    named = {name: tensors[f"relevance.{name}"].numpy() for name in about["relevance"]["names"]}
    statistics = labelled_together(named, graph.variables, about["relevance"]["attributes"])
    forecaster = build_saved(
        about["forecaster"]["kind"],
        (graph.max_lag, len(data.columns)),
        about["forecaster"]["settings"],
    )
    weights = {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
    forecaster.load_state_dict(weights)
    nll = about.get("nll", about.get("surprise"))
    return Discovery(
        graph=graph,
        relevance=statistics,
        forecaster=forecaster.eval().requires_grad_(False),
        losses=_table(about["losses"]),
        nll=_table(nll) if nll else None,
        config=Config.from_json(about["settings"]),
        data=data,
        evidence=_evidence(folder / EVIDENCE),
        alerts=_alerts(about.get("alerts", [])),
        measured_power=_power(folder / POWER),
        regimes=Regimes.from_dict(about["regimes"], data.rows) if about.get("regimes") else None,
    )


def _with_sample_domain(kept: dict[str, Any]) -> dict[str, Any]:
    """Older runs hold the domain of the sampled windows as a last column of the windows."""
    sample = kept["sample"]
    if sample.shape[2] > len(kept["mean"]):
        domain = sample[:, -1, -1].astype(np.int64)
        return {**kept, "sample": sample[:, :, :-1], "sample_domain": tuple(domain.tolist())}
    return {**kept, "sample_domain": tuple(kept.get("sample_domain", ()))}


def _columns(table: pd.DataFrame) -> dict[str, Any]:
    return {str(name): table.reset_index()[name].tolist() for name in table.reset_index()}


def _table(saved: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(saved).set_index("variable")


def _evidence(path: Path) -> dict[str, Any]:
    """What the page shows; a run without it has a shorter page."""
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return content if isinstance(content, dict) else {}


def _alerts(saved: list[dict[str, Any]]) -> tuple[Alert, ...]:
    return tuple(Alert(one["code"], one["sentence"], tuple(one["variables"])) for one in saved)


def _power(path: Path) -> Power | None:
    if not path.is_file():
        return None
    return Power.from_dict(json.loads(path.read_text(encoding="utf-8")))


def _tensor(values: np.ndarray[Any, Any]) -> torch.Tensor:
    return torch.from_numpy(np.array(values, dtype=np.float64, order="C"))  # no negative strides


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else repr(error)
