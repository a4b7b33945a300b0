"""Saved runs: a folder of JSON, CSV and safetensors. Loading one never runs code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save_file

from forecause.common.bounded import (
    LARGEST_MODEL,
    LARGEST_TEXT,
    check_candidates,
    parse_json,
    read_file,
)
from forecause.common.files import current, examine_output, save_text, write_folder
from forecause.common.version import __version__
from forecause.config import Config
from forecause.config.spec import ForecasterSpec, NotFetched, fetching
from forecause.data.summary import DataSummary
from forecause.diagnostics.finding import Finding
from forecause.diagnostics.power import Power
from forecause.diagnostics.regimes import Regimes
from forecause.discovery import Discovery
from forecause.errors import InputError
from forecause.forecast.causal import Causal
from forecause.forecast.members import rebuilt
from forecause.graph.axes import labelled_together
from forecause.graph.json_format import MOST_SCORES, parse_graph
from forecause.graph.lagged import LaggedGraph
from forecause.report.page import read_report
from forecause.seasons.course import TimeCourse
from forecause.store import schema

ARRAYS = ("mean", "sd", "latest", "sample")  # fields of DataSummary kept with the weights
RUN, GRAPH, EDGES, MODEL = "run.json", "graph.json", "edges.csv", "model.safetensors"
EVIDENCE, PAGE, POWER = "report.json", "report.html", "power.json"
FILES = (RUN, GRAPH, EDGES, MODEL, EVIDENCE, PAGE, POWER)
NEEDED = (RUN, GRAPH, MODEL)
READ = (GRAPH, MODEL, EVIDENCE, POWER)  # whose hashes are checked
HASHED = (*READ, EDGES)  # the page may be written again by itself

# Time and memory:
LARGEST_KEPT_P, LEAST_KEPT_SHARE = 0.05, 0.003  # of candidates kept where there are very many
ATTEMPTS = 5  # at reading a run that is being replaced

Arrays = dict[str, npt.NDArray[Any]]


def save(discovery: Discovery, folder: Path, overwrite: bool = False) -> Path:
    """Write the run into `folder`, all files or none; see forecause.common.files.

    A folder that holds something else, or a run with other settings or data, is left alone unless
    `overwrite` is true; a run of the same settings and data is replaced.
    """
    examine_output(folder)

    def may_replace(target: Path) -> None:
        if not overwrite and (occupied := occupant(target, discovery)):
            raise FolderTaken(f"{folder} {occupied}; give another folder or overwrite it.")

    may_replace(folder)
    try:
        write_folder(folder, lambda made: _write(discovery, made), FILES, may_replace)
    except OSError as error:
        raise InputError(f"Cannot write the run {folder}: {error.strerror or error}.") from None
    return folder


class FolderTaken(InputError):
    """The folder holds what should not be replaced unasked."""


def occupant(folder: Path, discovery: Discovery) -> str | None:
    """What a folder holds that this run should not replace unasked; None if it may."""
    return held_by_other(folder, discovery.config, discovery.data.fingerprint)


def held_by_other(folder: Path, config: Config, fingerprint: str | None = None) -> str | None:
    """What a folder holds besides a run with these settings and data; None if nothing.

    Settings that are left to the data (max_lag="auto", no fdr) agree with any.
    """
    if not folder.is_dir() or not any(folder.iterdir()):
        return None
    try:
        run, _ = schema.read(schema.SavedRun, RUN, _content(folder, RUN) or b"")
    except (OSError, InputError):
        return "holds files, but no forecause run that can be read"
    try:
        older = Config.from_json(run.settings).to_json()
    except (InputError, TypeError, ValueError):
        return "holds a run with settings that are unknown today"
    asked = config.to_json()
    free = {"device", "budget"}
    if asked["max_lag"] == "auto":
        free.add("max_lag")
    if asked["fdr"] is None:
        free.add("fdr")
    other = [name for name in asked if name not in free and asked[name] != older[name]]
    if other:
        was, now = (_short(settings[other[0]]) for settings in (older, asked))
        more = f" and {len(other) - 1} more" if len(other) > 1 else ""
        return f"holds a run with other settings ({other[0]} {was}, not {now}{more})"
    if fingerprint is not None and run.data.fingerprint != fingerprint:
        return "holds a run on other data"
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _write(discovery: Discovery, made: Path) -> None:
    discovery.graph.to_json(made / GRAPH)
    discovery.graph.to_csv(made / EDGES)
    save_file(_tensors(discovery), made / MODEL)
    _write_json(discovery.evidence, made / EVIDENCE)
    discovery.report(made / PAGE)
    if discovery.measured_power:
        _write_json(discovery.measured_power.to_dict(), made / POWER, indent=2)
    hashes = {name: _hash(made / name) for name in HASHED if (made / name).exists()}
    about = {"format": schema.FORMAT, "version": __version__, "id": uuid4().hex, "files": hashes}
    _write_json(about | _describe(discovery), made / RUN, indent=2)


def _write_json(content: Any, path: Path, indent: int | None = None) -> None:
    save_text(json.dumps(content, indent=indent, allow_nan=False) + "\n", path)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load(folder: str | Path, *, fetch: bool = False) -> Discovery:
    """A saved run; a damaged or foreign folder is an InputError. Loading never runs code.

    Nor does it use the network, unless `fetch` is true: a run of the forecaster chronos whose
    weights are named by a hub id then fetches them if this machine does not have them.

    Examples
    --------
    >>> import tempfile
    >>> import forecause as fc
    >>> system = fc.simulate(nodes=4, max_lag=2, rows=300, seed=1)
    >>> run = fc.discover(system.frame(), max_lag=2, forecaster="linear")
    >>> folder = run.save(tempfile.mkdtemp() + "/run")
    >>> fc.load(folder).graph == run.graph
    True
    """
    return load_run(Path(folder), fetch)


def load_graph(path: str | Path) -> LaggedGraph:
    """The graph of a graph.json, of a report's page with its scores, or of a saved run.

    Examples
    --------
    >>> import tempfile
    >>> import forecause as fc
    >>> graph = fc.LaggedGraph.from_edges(["a", "b"], 1, [("a", "b", 1)])
    >>> path = tempfile.mkdtemp() + "/graph.json"
    >>> _ = graph.to_json(path)
    >>> fc.load_graph(path) == graph
    True
    """
    place = Path(path)
    if _is_folder(place):
        return LaggedGraph.from_json(current(place, GRAPH))
    if place.suffix.lower() in (".html", ".htm"):
        return read_report(place)
    return LaggedGraph.from_json(place)


def load_run(folder: Path, fetch: bool = False) -> Discovery:
    """Read a saved run, checked against its schema and the hashes of its files."""
    version = None
    try:
        contents = _contents(folder)
        missing = [name for name in NEEDED if name not in contents]
        if missing:
            raise _NoRun(f"{_named(folder)} is not a saved run: {missing[0]} is missing.")
        head = _head(contents[RUN])
        version = head.get("version")
        if head.get("format", schema.FORMAT) != schema.FORMAT:
            raise _NoRun(
                f"{_named(folder / RUN)} is not a saved run of the format {schema.FORMAT}."
            )
        run, about = schema.read(schema.SavedRun, RUN, contents[RUN])
        _check_defined(run.forecaster)
        with fetching(fetch):
            discovery = _restore(contents, run, about)
        if not np.isnan(discovery.data.latest).any():
            discovery.forecast(1)  # weights that fit in shape alone show themselves
        return discovery
    except (_NoRun, NotFetched) as error:
        raise InputError(str(error)) from None
    except MemoryError:
        raise
    except Exception as error:  # what a damaged file leads to is without end
        by = f" (written by forecause {str(version)[:20]})" if version else ""
        said = f"The saved run {_named(folder)}{by} is damaged: {_first_line(error)}."
        raise InputError(said) from None


class _NoRun(InputError):
    """The folder holds no run that could be damaged."""


def _check_defined(forecaster: schema.SavedForecaster) -> None:
    """A forecaster of one's own is known once the module that defines it is imported."""
    if forecaster.kind in ForecasterSpec.every():
        return
    named = forecaster.module and forecaster.module != "__main__"
    where = forecaster.module if named else "the module that defines it"
    raise _NoRun(
        f"The forecaster {forecaster.kind!r} of this run is not one of Forecause's own; import "
        f"{where} before you load the run."
    )


def _contents(folder: Path) -> dict[str, bytes]:
    """The files of one run, each opened once; again, if another run took their place meanwhile.

    Every run has an id, so files that were read between two readings of the same run.json are its
    own, however a new run is put in place.
    """
    for _ in range(ATTEMPTS):
        read = {name: _content(folder, name) for name in (RUN, *READ)}
        if _content(folder, RUN) == read[RUN]:
            return {name: content for name, content in read.items() if content is not None}
    raise _NoRun(f"{_named(folder)} is being replaced all the time; try again.")


def _content(folder: Path, name: str) -> bytes | None:
    """The bytes of a file of a run; None if there is none."""
    for _ in range(ATTEMPTS):
        path = current(folder, name)
        try:
            return read_file(path, LARGEST_MODEL if name == MODEL else LARGEST_TEXT)
        except (InputError, PermissionError):
            raise
        except (OSError, ValueError):
            if current(folder, name) == path:  # else it was moved before it could be opened
                return None
    return None


def _head(content: bytes) -> dict[str, Any]:
    """run.json as far as it can be read: empty if it cannot, without a format if it has none."""
    try:
        head = parse_json(content.decode("utf-8"), strict=False)
    except (ValueError, RecursionError):
        return {}
    return {"format": None, **head} if isinstance(head, dict) else {"format": None}


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _named(path: Path) -> str:
    text = str(path).replace("\n", " ")
    return text if len(text) <= 160 else f"{text[:80]}...{text[-70:]}"


def _describe(discovery: Discovery) -> dict[str, Any]:
    data = {
        field.name: getattr(discovery.data, field.name)
        for field in fields(DataSummary)
        if field.name not in (*ARRAYS, "labels", "course")
    }
    data["labels"] = [asdict(label) for label in discovery.data.labels]
    data["course"] = discovery.data.course.to_json() if discovery.data.course else None
    return {
        "settings": discovery.config.to_json(),
        "data": data,
        "forecaster": {
            "kind": discovery.forecaster.kind,
            "settings": discovery.forecaster.settings.model_dump(mode="json"),
            "module": type(discovery.forecaster.settings).__module__,
        },
        "causal": discovery.causal.describe() if discovery.causal else None,
        "losses": _columns(discovery.losses),
        "nll": None if discovery.nll is None else _columns(discovery.nll),
        "alerts": [finding.to_json() for finding in discovery.findings],
        "regimes": discovery.regimes.to_dict() if discovery.regimes else None,
        "relevance": {
            "names": [str(name) for name in discovery.relevance.data_vars],
            "attributes": dict(discovery.relevance.attrs),
        },
    }


def _tensors(discovery: Discovery) -> Arrays:
    weights = {f"model.{k}": _contiguous(v) for k, v in discovery.forecaster.state().items()}
    data = {f"data.{name}": _doubles(getattr(discovery.data, name)) for name in ARRAYS}
    causal = discovery.causal.arrays() if discovery.causal else {}
    weights |= {name: _contiguous(values) for name, values in causal.items()}
    return weights | data | _statistics(discovery.relevance)


def _statistics(relevance: xr.Dataset) -> Arrays:
    """Those of all candidates, or of very many those of the ones that stand out."""
    named = {str(name): values.values for name, values in relevance.data_vars.items()}
    if relevance["relevance"].size <= MOST_SCORES:
        return {f"relevance.{name}": _doubles(values) for name, values in named.items()}
    share = relevance["relevance"] / relevance["relevance"].sum(("source", "lag")).clip(1e-300)
    stands_out = share.values >= LEAST_KEPT_SHARE
    if "p_value" in named:
        stands_out |= named["p_value"] <= LARGEST_KEPT_P
    kept = {f"some.{name}": _doubles(values[stands_out]) for name, values in named.items()}
    return kept | {"some.places": np.flatnonzero(stands_out.ravel())}


def _all_statistics(
    arrays: dict[str, Any], names: Sequence[str], shape: tuple[int, ...]
) -> dict[str, Any]:
    """Inverse of `_statistics`; dropped candidates get p = q = 1 and all else 0."""
    if "some.places" not in arrays:
        return arrays
    check_candidates(shape[0], shape[2])
    places, restored = arrays["some.places"], dict(arrays)
    if not ((places >= 0) & (places < np.prod(shape))).all():
        raise InputError("model.safetensors: some.places names candidates that there are not")
    for name in names:
        own = arrays.get(f"some.{name}")
        if own is None or own.shape != places.shape:
            raise InputError(f"model.safetensors: some.{name} is missing or has another shape")
        values = np.full(shape, 1.0 if name in ("p_value", "q_value") else 0.0)
        values.flat[places] = own
        restored[f"relevance.{name}"] = values
    return restored


def _restore(
    contents: Mapping[str, bytes], run: schema.SavedRun, about: dict[str, Any]
) -> Discovery:
    for name, digest in run.files.items():
        if name in READ and hashlib.sha256(contents.get(name, b"")).hexdigest() != digest:
            raise InputError(f"{name} does not belong to this {RUN}: it was changed or mixed up")
    tensors = load_arrays(contents[MODEL])
    graph = parse_graph(contents[GRAPH].decode("utf-8"), GRAPH)
    evidence, shown = schema.SavedEvidence(), dict[str, Any]()  # without, the page is shorter
    if EVIDENCE in contents:
        evidence, shown = schema.read(schema.SavedEvidence, EVIDENCE, contents[EVIDENCE])
    power = None
    if POWER in contents:
        power = Power.from_dict(schema.read(schema.SavedPower, POWER, contents[POWER])[1])
    arrays = {k: v for k, v in tensors.items() if not k.startswith("model.")}
    shape = (len(graph.variables), len(graph.variables), graph.max_lag)
    arrays = _all_statistics(arrays, run.relevance.names, shape)
    schema.agree(run, graph, arrays, evidence)
    data = _summary(run.data, arrays)
    named = {name: arrays[f"relevance.{name}"] for name in run.relevance.names}
    nll = about.get("nll", about.get("surprise"))
    forecast_shape = (graph.max_lag, len(data.columns))
    weights = {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
    settings = run.forecaster.settings
    forecaster = rebuilt(run.forecaster.kind, forecast_shape, settings, weights)
    schema.check_forecaster(forecaster, run.data)
    return Discovery(
        graph=graph,
        relevance=labelled_together(named, graph.variables, run.relevance.attributes),
        forecaster=forecaster,
        causal=Causal.restored(about["causal"], tensors, forecast_shape) if run.causal else None,
        losses=_table(about["losses"]),
        nll=_table(nll) if nll else None,
        config=Config.from_json(run.settings),
        data=data,
        evidence=shown,
        findings=tuple(map(Finding.from_json, about.get("alerts", []))),
        measured_power=power,
        regimes=Regimes.from_dict(about["regimes"], data.rows) if run.regimes else None,
    )


def _summary(data: schema.SavedData, arrays: dict[str, Any]) -> DataSummary:
    kept = dict(data) | {name: arrays[f"data.{name}"] for name in ARRAYS}
    kept["source"] = data.source.model_dump() if data.source else None
    kept["course"] = TimeCourse.from_json(dict(data.course)) if data.course else None
    if kept["sample"].shape[2] > len(kept["mean"]):  # 0.1 kept the domain as a last column
        codes = kept["sample"][:, -1, -1].astype(np.int64)
        kept |= {"sample": kept["sample"][:, :, :-1], "sample_domain": tuple(codes.tolist())}
    return DataSummary(**{field.name: kept[field.name] for field in fields(DataSummary)})


def _columns(table: pd.DataFrame) -> dict[str, Any]:
    """Plain lists; what is not finite is None."""
    whole = table.reset_index()
    return {str(name): [_plain(cell) for cell in whole[name].tolist()] for name in whole}


def _plain(cell: Any) -> Any:
    return None if isinstance(cell, float) and not np.isfinite(cell) else cell


def _table(columns: dict[str, Any]) -> pd.DataFrame:
    table = pd.DataFrame(columns).set_index("variable")
    numbers = [name for name in table if name != "chosen"]
    return table.astype(dict.fromkeys(numbers, float))


def _doubles(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return _contiguous(np.asarray(values, dtype=np.float64))


def _contiguous(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """safetensors writes the buffer as it lies in memory; it must be in C order."""
    return np.asarray(values, order="C")


def _first_line(error: Exception) -> str:
    text = str(error).strip() or repr(error)
    first = text.splitlines()[0].rstrip(".")
    return first if len(first) <= 300 else f"{first[:297]}..."
